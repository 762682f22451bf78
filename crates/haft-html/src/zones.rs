//! What the page is about, and what stands around it: every container is a stretch of the text that was written, with
//! what is known of it. Choosing one is choosing a stretch, so nothing is read twice and no tree is built.

use crate::element::Kind;

/// So many containers are told apart; what is in others belongs to those around them.
const ZONES_MAX: usize = 50_000;
/// Less text than this is not what a page is about.
const LEAST: usize = 200;
/// As far out is looked for more of the same.
const WIDER_MAX: usize = 4;
/// Words in names of classes that speak for content, and such that speak for what stands around it.
const FOR: &[&str] = &["article", "content", "entry", "post", "story", "main", "text", "body", "markdown", "prose"];
const AGAINST: &[&str] = &[
    "nav",
    "menu",
    "sidebar",
    "footer",
    "comment",
    "share",
    "social",
    "promo",
    "banner",
    "cookie",
    "consent",
    "related",
    "advert",
    "sponsor",
    "popup",
    "modal",
    "breadcrumb",
    "pagination",
    "newsletter",
    "subscribe",
    "toolbar",
    "masthead",
    "recommend",
    "teaser",
    "widget",
];

/// A container.
#[derive(Debug)]
struct Zone {
    parent: usize,
    kind: Kind,
    start: usize,
    end: usize,
    /// Bytes of its own text, not counting containers inside.
    text: usize,
    link: usize,
    /// What its paragraphs speak for.
    score: f64,
    /// The same without what those inside it speak for.
    direct: f64,
    hint: f64,
    /// Whether its stretch was written anew as part of a table.
    gone: bool,
}

/// The containers of a page, in the order in which they begin.
#[derive(Debug)]
pub(crate) struct Zones {
    all: Vec<Zone>,
    wanted: bool,
}

impl Zones {
    /// With or without looking at names.
    pub(crate) fn new(wanted: bool) -> Self {
        let mut zones = Self { all: Vec::new(), wanted };
        zones.open(0, Kind::Body, 0, ("", ""));
        zones
    }

    /// A container begins here, inside another.
    pub(crate) fn open(&mut self, parent: usize, kind: Kind, start: usize, names: (&str, &str)) -> usize {
        if !self.wanted && !self.all.is_empty() || self.all.len() >= ZONES_MAX {
            return parent;
        }
        let hint = if self.wanted { hint(kind, names) } else { 0.0 };
        self.all.push(Zone {
            parent,
            kind,
            start,
            end: usize::MAX,
            text: 0,
            link: 0,
            score: 0.0,
            direct: 0.0,
            hint,
            gone: false,
        });
        self.all.len() - 1
    }

    pub(crate) fn close(&mut self, zone: usize, end: usize) {
        if let Some(zone) = self.all.get_mut(zone) {
            zone.end = end;
        }
    }

    /// The last of those that have begun.
    pub(crate) fn mark(&self) -> usize {
        self.all.len()
    }

    /// Those that began since are part of a table now.
    pub(crate) fn forget_since(&mut self, mark: usize) {
        self.all.iter_mut().skip(mark).for_each(|zone| zone.gone = true);
    }

    /// Text was written in a container.
    pub(crate) fn text(&mut self, zone: usize, bytes: usize, linked: bool) {
        if let Some(zone) = self.all.get_mut(zone) {
            zone.text += bytes;
            zone.link += if linked { bytes } else { 0 };
        }
    }

    /// A paragraph was written: it speaks for its container, and half as much for the one around.
    pub(crate) fn paragraph(&mut self, zone: usize, text: &str) {
        if !self.wanted || text.len() < 40 {
            return;
        }
        let commas = memchr::memchr_iter(b',', text.as_bytes()).count().min(10);
        let worth = count(1 + commas + (text.len() / 100).min(4));
        let Some(own) = self.all.get_mut(zone) else { return };
        own.score += worth;
        own.direct += worth;
        let parent = own.parent;
        if parent != zone {
            self.all[parent].score += worth / 2.0;
        }
    }

    /// The stretches of the text that the page is about; none if that cannot be told.
    pub(crate) fn main(&self, out: &str) -> Option<String> {
        let sums = self.sums();
        let long = self.stated(&sums, LEAST).or_else(|| self.scored(&sums));
        let long = long.map(|chosen| self.kept(self.widened(chosen, &sums), &sums, out));
        // Of a short page only the page itself can say what it is about.
        let short = || self.stated(&sums, 1).map(|chosen| self.kept(chosen, &sums, out));
        long.filter(|text| text.len() >= LEAST).or_else(|| short().filter(|text| !text.is_empty()))
    }

    /// Text and linked text of each, with all inside.
    fn sums(&self) -> Vec<(usize, usize)> {
        let mut sums: Vec<(usize, usize)> = self.all.iter().map(|zone| (zone.text, zone.link)).collect();
        for index in (1..self.all.len()).rev() {
            let (own, parent) = (sums[index], self.all[index].parent);
            sums[parent].0 += own.0;
            sums[parent].1 += own.1;
        }
        sums
    }

    /// What the page itself says is its main part: one main element, or one article.
    fn stated(&self, sums: &[(usize, usize)], least: usize) -> Option<usize> {
        let of = |kind: Kind| {
            let fits =
                |index: &usize| self.all[*index].kind == kind && !self.all[*index].gone && sums[*index].0 >= least;
            let mut found = (0..self.all.len()).filter(fits);
            let first = found.next();
            first.filter(|_| found.next().is_none())
        };
        // A main part that is all links is a front page, of which every part counts.
        of(Kind::Article).or_else(|| of(Kind::Main)).filter(|zone| density(sums[*zone]) < 0.8)
    }

    fn scored(&self, sums: &[(usize, usize)]) -> Option<usize> {
        let score = |index: usize| {
            let zone = &self.all[index];
            (zone.score + zone.hint) * (1.0 - density(sums[index]))
        };
        let fits = |index: &usize| !self.all[*index].gone && self.all[*index].score > 0.0;
        (0..self.all.len()).filter(fits).max_by(|a, b| score(*a).total_cmp(&score(*b)))
    }

    /// A container around it, if another part of that says about as much.
    fn widened(&self, chosen: usize, sums: &[(usize, usize)]) -> usize {
        if matches!(self.all[chosen].kind, Kind::Main | Kind::Article | Kind::Body) {
            return chosen;
        }
        let mut deep: Vec<f64> = self.all.iter().map(|zone| zone.direct).collect();
        for index in (1..self.all.len()).rev() {
            let own = deep[index];
            deep[self.all[index].parent] += own;
        }
        let (mut wide, mut inner) = (chosen, chosen);
        for _ in 0..WIDER_MAX {
            let parent = self.all[inner].parent;
            let near = |(index, zone): (usize, &Zone)| {
                index != inner
                    && zone.parent == parent
                    && deep[index] >= deep[inner] / 4.0
                    && density(sums[index]) < 0.4
                    && zone.hint >= 0.0
            };
            if self.all.iter().enumerate().skip(1).any(near) {
                wide = parent;
            }
            inner = parent;
        }
        wide
    }

    /// The text of a container without what in it stands around the content.
    fn kept(&self, chosen: usize, sums: &[(usize, usize)], out: &str) -> String {
        let end = self.all[chosen].end.min(out.len());
        let mut at = self.all[chosen].start;
        let mut parts = Vec::new();
        for (index, zone) in self.all.iter().enumerate().skip(chosen + 1) {
            if zone.start >= end {
                break;
            }
            if zone.start >= at && zone.end <= end && !zone.gone && self.is_noise(index, sums) {
                parts.extend(out.get(at..zone.start));
                at = zone.end;
            }
        }
        parts.extend(out.get(at..end));
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim_matches('\n').trim_end()).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    fn is_noise(&self, index: usize, sums: &[(usize, usize)]) -> bool {
        let zone = &self.all[index];
        let dense = density(sums[index]);
        match zone.kind {
            Kind::Nav | Kind::Footer | Kind::Aside => true,
            Kind::Form => sums[index].0 < 2 * LEAST,
            _ => zone.hint < 0.0 && (dense > 0.3 || sums[index].0 < LEAST),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of pages are far below where that begins")]
fn count(number: usize) -> f64 {
    number as f64
}

fn density((text, link): (usize, usize)) -> f64 {
    count(link) / count(text.max(1))
}

fn hint(kind: Kind, (id, class): (&str, &str)) -> f64 {
    let own = match kind {
        Kind::Main | Kind::Article => 25.0,
        Kind::Nav | Kind::Aside | Kind::Footer | Kind::Form => -25.0,
        Kind::Header => -5.0,
        _ => 0.0,
    };
    if id.is_empty() && class.is_empty() {
        return own;
    }
    let names = format!("{id} {class}").to_ascii_lowercase();
    let found = |words: &[&str]| words.iter().any(|word| names.contains(word));
    let against = found(AGAINST);
    own + if against { -25.0 } else { 0.0 } + if !against && found(FOR) { 15.0 } else { 0.0 }
}

//! Git's wildmatch, in time proportional to pattern times text: git's own tries alternatives one after the other, and takes
//! longer than anybody lives for `*a*a*a*a*a*a*a*a*b`.
//!
//! The pattern is a small automaton. All the places in it that the text read so far may have led to are followed at once.

/// Sets of states of patterns up to this many tokens need no memory of their own.
const SMALL: usize = 4;

/// A compiled pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wildmatch {
    tokens: Vec<Token>,
    classes: Vec<ByteSet>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// `?`: any byte but a slash.
    Any,
    /// `[…]`: a byte of the class with this number.
    Class(usize),
    /// `*`: any number of bytes but slashes.
    Run,
    /// `**` between slashes: any number of bytes.
    Everything,
    /// `**/`: what follows may begin here, or after an `Everything` and a slash, which are the next two tokens.
    Directories,
}

impl Wildmatch {
    /// Reads a pattern. None if it is malformed: git takes that as a pattern that matches nothing.
    pub(super) fn compile(pattern: &[u8]) -> Option<Self> {
        let mut compiled = Self { tokens: Vec::with_capacity(pattern.len()), classes: Vec::new() };
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            at += 1;
            match byte {
                b'\\' => {
                    compiled.tokens.push(Token::Byte(*pattern.get(at)?));
                    at += 1;
                }
                b'?' => compiled.tokens.push(Token::Any),
                b'[' => {
                    let (class, length) = ByteSet::parse(&pattern[at..])?;
                    compiled.tokens.push(Token::Class(compiled.classes.len()));
                    compiled.classes.push(class);
                    at += length;
                }
                b'*' => {
                    let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                    let begins = at == 1 || pattern[at - 2] == b'/';
                    at += stars;
                    compiled.star(stars > 0 && begins, &pattern[at..]);
                }
                byte => compiled.tokens.push(Token::Byte(byte)),
            }
        }
        Some(compiled)
    }

    /// Two stars reach across slashes only as a whole name.
    fn star(&mut self, double: bool, rest: &[u8]) {
        match rest {
            [b'/', ..] if double => self.tokens.extend([Token::Directories, Token::Everything]),
            [] | [b'\\', b'/', ..] if double => self.tokens.push(Token::Everything),
            _ => self.tokens.push(Token::Run),
        }
    }

    /// The only text that it matches, if there is just one.
    pub(super) fn literal(&self) -> Option<Vec<u8>> {
        self.tokens.iter().map(Token::byte).collect()
    }

    /// What every text that it matches ends with.
    pub(super) fn literal_end(&self) -> Vec<u8> {
        let mut end: Vec<u8> = self.tokens.iter().rev().map_while(Token::byte).collect();
        // The slash after `**` may be left out together with it.
        if let Some(Token::Everything) = self.tokens.get(self.tokens.len().wrapping_sub(end.len() + 1))
            && end.last() == Some(&b'/')
        {
            end.pop();
        }
        end.reverse();
        end
    }

    pub(super) fn size(&self) -> usize {
        self.tokens.len()
    }

    /// Whether all of the text matches.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let words = self.tokens.len() / 64 + 1;
        if words <= SMALL {
            self.run(text, &mut [0; SMALL][..words], &mut [0; SMALL][..words])
        } else {
            self.run(text, &mut vec![0; words], &mut vec![0; words])
        }
    }

    /// Each state is the number of a token that comes next; the last one is the end of the pattern.
    fn run<'s>(&self, text: &[u8], mut states: &'s mut [u64], mut next: &'s mut [u64]) -> bool {
        self.reach(states, 0);
        for &byte in text {
            next.fill(0);
            let mut any = false;
            for (word, bits) in states.iter().enumerate() {
                let mut bits = *bits;
                while bits != 0 {
                    let state = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    if let Some(to) = self.step(state, byte) {
                        self.reach(next, to);
                        any = true;
                    }
                }
            }
            if !any {
                return false;
            }
            std::mem::swap(&mut states, &mut next);
        }
        let end = self.tokens.len();
        states[end / 64] & (1 << (end % 64)) != 0
    }

    /// Where a state leads with a byte.
    fn step(&self, state: usize, byte: u8) -> Option<usize> {
        match self.tokens.get(state)? {
            Token::Byte(wanted) => (*wanted == byte).then_some(state + 1),
            Token::Any => (byte != b'/').then_some(state + 1),
            Token::Class(class) => self.classes[*class].has(byte).then_some(state + 1),
            Token::Run => (byte != b'/').then_some(state),
            Token::Everything => Some(state),
            Token::Directories => None,
        }
    }

    /// Adds a state, and those that it leads to without a byte.
    fn reach(&self, states: &mut [u64], mut state: usize) {
        loop {
            let (word, bit) = (state / 64, 1 << (state % 64));
            if states[word] & bit != 0 {
                return;
            }
            states[word] |= bit;
            match self.tokens.get(state) {
                Some(Token::Run | Token::Everything) => state += 1,
                Some(Token::Directories) => {
                    // `Everything`, and the slash that it may be empty before.
                    for inner in [state + 1, state + 2] {
                        states[inner / 64] |= 1 << (inner % 64);
                    }
                    state += 3;
                }
                _ => return,
            }
        }
    }
}

impl Token {
    fn byte(&self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(*byte),
            _ => None,
        }
    }
}

/// A set of bytes. It never holds the slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByteSet([u64; 4]);

impl ByteSet {
    /// Reads a class from behind its `[`, and says how long it is with its `]`.
    fn parse(text: &[u8]) -> Option<(Self, usize)> {
        let mut set = Self([0; 4]);
        let negated = matches!(text.first(), Some(b'!' | b'^'));
        let mut at = usize::from(negated);
        // A range begins at the byte before its dash, unless that ended a range or named a class.
        let mut before = None;
        // A bracket that comes first is a member.
        let mut byte = *text.get(at)?;
        loop {
            match (byte, before, text.get(at + 1)) {
                (b'\\', ..) => {
                    at += 1;
                    byte = *text.get(at)?;
                    set.add(byte, byte);
                    before = Some(byte);
                }
                (b'-', Some(first), Some(next)) if *next != b']' => {
                    at += if *next == b'\\' { 2 } else { 1 };
                    set.add(first, *text.get(at)?);
                    before = None;
                }
                (b'[', _, Some(b':')) => {
                    let length = text[at + 2..].iter().position(|byte| *byte == b']')?;
                    if let Some(name) = text[at + 2..at + 2 + length].strip_suffix(b":") {
                        set.add_named(name)?;
                        at += 2 + length;
                        before = None;
                    } else {
                        set.add(byte, byte);
                        before = Some(byte);
                    }
                }
                _ => {
                    set.add(byte, byte);
                    before = Some(byte);
                }
            }
            at += 1;
            byte = *text.get(at)?;
            if byte == b']' {
                break;
            }
        }
        if negated {
            set.0 = set.0.map(|bits| !bits);
        }
        set.remove(b'/');
        Some((set, at + 1))
    }

    fn add(&mut self, first: u8, last: u8) {
        for byte in first..=last {
            self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
        }
    }

    fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] &= !(1 << (byte % 64));
    }

    /// Adds the bytes of a class such as `[:digit:]`. None if there is no such class.
    fn add_named(&mut self, name: &[u8]) -> Option<()> {
        let is_member: fn(u8) -> bool = match name {
            b"alnum" => |byte| byte.is_ascii_alphanumeric(),
            b"alpha" => |byte| byte.is_ascii_alphabetic(),
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => |byte| byte.is_ascii_control(),
            b"digit" => |byte| byte.is_ascii_digit(),
            b"graph" => |byte| byte.is_ascii_graphic(),
            b"lower" => |byte| byte.is_ascii_lowercase(),
            b"print" => |byte| matches!(byte, 0x20..=0x7e),
            b"punct" => |byte| byte.is_ascii_punctuation(),
            // Git's own idea of white space.
            b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
            b"upper" => |byte| byte.is_ascii_uppercase(),
            b"xdigit" => |byte| byte.is_ascii_hexdigit(),
            _ => return None,
        };
        (0..=u8::MAX).filter(|byte| is_member(*byte)).for_each(|byte| self.add(byte, byte));
        Some(())
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] & (1 << (byte % 64)) != 0
    }
}

//! Schedules in words: `every 5 minutes`, `weekdays at 9:00`.

/// What words mean.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// A period in milliseconds.
    Every(i64),
    /// The same as this cron expression.
    Cron(String),
    /// Once, after so many milliseconds.
    After(i64),
    /// Once; the words are a moment's.
    Once(String),
}

/// Names of units, and how long one is.
const UNITS: &[(&[&str], i64)] = &[
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "week", "weeks"], 7 * 86_400_000),
];

/// What cron has names for.
const NICKNAMES: &[(&str, &str)] = &[
    ("hourly", "0 * * * *"),
    ("daily", "0 0 * * *"),
    ("midnight", "0 0 * * *"),
    ("weekly", "0 0 * * 0"),
    ("monthly", "0 0 1 * *"),
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
];

/// Days of the week as cron counts them.
const DAYS: &[(&str, &str)] = &[
    ("sunday", "0"),
    ("monday", "1"),
    ("tuesday", "2"),
    ("wednesday", "3"),
    ("thursday", "4"),
    ("friday", "5"),
    ("saturday", "6"),
];

/// Reads a schedule in lower case. `None` where it is none of these: it may be cron.
pub(super) fn read(text: &str) -> Option<Said> {
    if let Some(period) = short(text) {
        return Some(Said::Every(period));
    }
    match text.split_once(char::is_whitespace) {
        Some(("in", wait)) => return period(wait.trim()).map(Said::After),
        Some(("at" | "once", moment)) => {
            let moment = moment.trim();
            return Some(Said::Once(moment.strip_prefix("at ").unwrap_or(moment).to_owned()));
        }
        _ => {}
    }
    if let Some((_, cron)) = NICKNAMES.iter().find(|(name, _)| text.trim_start_matches('@') == *name) {
        return Some(Said::Cron((*cron).to_owned()));
    }
    let (days, time) = match text.split_once(" at ") {
        Some((days, time)) => (days.trim(), Some(clock(time.trim())?)),
        None => (text, None),
    };
    if let Some((hour, minute)) = time {
        return weekdays(days).map(|days| Said::Cron(format!("{minute} {hour} * * {days}")));
    }
    period(text.strip_prefix("every ")?.trim()).map(Said::Every)
}

/// `30s`, `5m`, `1h`, `1d`.
fn short(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (!unit.contains(char::is_whitespace)).then(|| number.parse::<i64>().ok()?.checked_mul(unit_ms(unit)?)).flatten()
}

/// `5 minutes`, `minute`, `5m`.
pub(super) fn period(text: &str) -> Option<i64> {
    match text.split_once(char::is_whitespace) {
        Some((number, unit)) => number.parse::<i64>().ok()?.checked_mul(unit_ms(unit.trim())?),
        None => unit_ms(text).or_else(|| short(text)),
    }
}

fn unit_ms(word: &str) -> Option<i64> {
    UNITS.iter().find(|(names, _)| names.contains(&word)).map(|(_, ms)| *ms)
}

/// `9:00`, `17`, `7pm`, `7:30 am`.
pub(super) fn clock(text: &str) -> Option<(u8, u8)> {
    let (digits, half) =
        match text.strip_suffix("am").map(|rest| (rest, 0)).or(text.strip_suffix("pm").map(|rest| (rest, 12))) {
            Some((rest, half)) => (rest.trim_end(), Some(half)),
            None => (text, None),
        };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "00"));
    let plain = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !plain(hour) || minute.len() != 2 || !plain(minute) {
        return None;
    }
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}

/// `weekdays`, `every monday and thursday`, `daily`, as cron's fifth field.
fn weekdays(text: &str) -> Option<String> {
    let text = text.strip_prefix("every ").or_else(|| text.strip_prefix("on ")).unwrap_or(text).trim();
    match text {
        "daily" | "day" | "days" => return Some("*".to_owned()),
        "weekday" | "weekdays" => return Some("1-5".to_owned()),
        "weekend" | "weekends" => return Some("0,6".to_owned()),
        _ => {}
    }
    let text = text.replace(',', " ");
    let names: Vec<&str> = text.split_whitespace().filter(|word| *word != "and").collect();
    let numbers: Option<Vec<&str>> = names.iter().map(|name| weekday(name).map(|(_, number)| number)).collect();
    numbers.filter(|numbers| !numbers.is_empty()).map(|numbers| numbers.join(","))
}

/// A day of the week, whole or by its first three letters, one or many: its place after Sunday, also as cron has it.
pub(super) fn weekday(word: &str) -> Option<(i8, &'static str)> {
    let one = word.strip_suffix('s').unwrap_or(word);
    let fits =
        |name: &str| one == name || (one.len() >= 3 && name.starts_with(one)) || word == "tues" && name == "tuesday";
    let (at, (_, number)) = DAYS.iter().enumerate().find(|(_, (name, _))| fits(name))?;
    i8::try_from(at).ok().map(|at| (at, *number))
}

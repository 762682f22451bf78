//! When to come again, as servers say it.

use crate::http::HeaderMap;
use serde_json::Value;

/// What the headers say, in milliseconds from now: a number of them, of seconds, or a date.
pub(super) fn said(headers: &HeaderMap, now_ms: i64) -> Option<i64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let exact = text("retry-after-ms").and_then(|text| millis(text, 1.0));
    exact.or_else(|| text("retry-after").and_then(|text| millis(text, 1000.0).or_else(|| until(text, now_ms))))
}

/// What a body says: Google tells it in a detail.
pub(super) fn told(error: &Value) -> Option<i64> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    millis(delay.strip_suffix('s')?, 1000.0)
}

#[expect(clippy::cast_possible_truncation, reason = "what is out of range is cut to a day")]
fn millis(text: &str, each: f64) -> Option<i64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
    Some((number * each).ceil().min(86_400_000.0) as i64)
}

fn until(text: &str, now_ms: i64) -> Option<i64> {
    let then = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some((then.as_millisecond() - now_ms).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HeaderValue;
    use serde_json::json;

    #[test]
    fn it_is_read_in_every_form() {
        let at = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            said(&headers, 1_445_412_470_000)
        };
        assert_eq!(at("retry-after", "3"), Some(3000));
        assert_eq!(at("retry-after", "0.5"), Some(500));
        assert_eq!(at("retry-after-ms", "1250.2"), Some(1251));
        assert_eq!(at("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(10_000));
        assert_eq!(at("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), Some(0), "it is past");
        for odd in ["-1", "soon", "NaN", "inf", ""] {
            assert_eq!(at("retry-after", odd), None, "{odd}");
        }
        assert_eq!(at("retry-after", "1e30"), Some(86_400_000), "no longer than a day");
        let detail = json!({"details": [{"@type": "a"}, {"@type": "b", "retryDelay": "34.074824224s"}]});
        assert_eq!((told(&detail), told(&json!({}))), (Some(34_075), None));
    }
}

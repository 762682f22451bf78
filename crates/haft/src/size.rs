//! Sizes as people write them.

use haft_core::CallError;

/// `65536`, `64k`, `512m`, `2g`, also with a final `b` or `ib`. Zero is no size.
pub(crate) fn size(text: &str) -> Result<u64, CallError> {
    let lower = text.trim().to_lowercase();
    let lower = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
    let (digits, unit) = match lower.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        Some((at, _)) => lower.split_at(at),
        None => (lower, ""),
    };
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(bad(text)),
    };
    let number: u64 = digits.parse().map_err(|_| bad(text))?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(|| bad(text))
}

fn bad(text: &str) -> CallError {
    CallError::invalid(format!("`{}`: expected a size like 65536, 64k, 512m or 2g", haft_core::preview::inert(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nonsense_is_not() {
        let read = |text: &str| size(text).ok();
        assert_eq!(
            (read("7"), read("64k"), read("2G"), read("1MiB")),
            (Some(7), Some(65536), Some(2 << 30), Some(1 << 20))
        );
        for bad in ["", "0", "k", "-1", "1x", "99999999999t", "1.5g"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}

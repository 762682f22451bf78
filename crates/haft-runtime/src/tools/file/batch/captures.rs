//! Names made of what the wildcards of a glob matched, so that `*.txt` can become `$1.md`.

/// The template with `$1`, `$2` … replaced; `$$` is a dollar sign. Errs with the number of a wildcard that
/// is not there.
pub(super) fn expand(template: &str, captures: &[String]) -> Result<String, usize> {
    let mut text = String::new();
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('$', Some('$')) => {
                rest.next();
                text.push('$');
            }
            ('$', Some(digit)) if digit.is_ascii_digit() => {
                let number = rest.next().and_then(|digit| digit.to_digit(10)).unwrap_or(0) as usize;
                let part = number.checked_sub(1).and_then(|at| captures.get(at));
                text.push_str(part.ok_or(number)?);
            }
            _ => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in() {
        assert_eq!(expand("$1-$$.md", &["x".into()]).as_deref(), Ok("x-$.md"));
        assert_eq!(expand("$2.md", &["x".into()]), Err(2));
    }
}

//! Masking of long commands.

use haft_core::shell::masking::mask_command;

/// Time for texts of the greatest length grows with the length alone.
#[test]
fn masking_is_linear() {
    let pieces = [
        "x ",
        "password=a,",
        "a=b&",
        "x;token=a&b=1 ",
        "\"password=\\\"\" ",
        "x[\"password\"]=\"a\";",
        "set(\"token\",",
        "password: a = ",
        "machine login password ",
        "%s",
        "$TOKEN ",
        "sudo ",
        "'",
        "\\n",
        "default login a password \"",
    ];
    let seconds = |command: &str| {
        let begun = std::time::Instant::now();
        let _ = mask_command(command);
        begun.elapsed().as_secs_f64()
    };
    for piece in pieces {
        for frame in [("", ""), ("printf '", "'"), ("python3 -c '", "'"), ("cat <<E\n", "\nE")] {
            let of = |length: usize| format!("{}{}{}", frame.0, piece.repeat(length / piece.len()), frame.1);
            let (small, large) = (seconds(&of(10_000)), seconds(&of(120_000)));
            assert!(large < 50.0 * small.max(0.02), "{frame:?} {piece:?}: {small} and {large} seconds");
        }
    }
}

//! Changes to files on an overlay, as in a container: what comes from a lower layer is changed and undone like the rest, but
//! for directories, which overlayfs does not move.

use super::bench::{Bench, Closeness, memory, mounting, overlaid, snapshot};
use super::*;
use haft_sandbox::layer::stands;

/// The half that runs on the overlay. By itself it does nothing.
#[test]
fn inside() {
    let Some(dir) = std::env::var_os("HAFT_OVERLAY") else { return };
    let dir = PathBuf::from(dir).join("mount");
    let bench = Bench::open(&dir, &dir, UndoLimits::default());
    let start = snapshot(&bench.root(), Closeness::Exact);
    let at = |name: &str| bench.root().join(name);
    let staged = bench.dir.join("staged");
    std::fs::write(&staged, "placed\n").unwrap();
    let state = |path: &Path| stands(path).unwrap();
    let changes = [
        Change::Write { path: at("written"), content: b"new\n".to_vec(), before: state(&at("written")), mode: None },
        Change::Write { path: at("new"), content: b"new\n".to_vec(), before: State::Absent, mode: None },
        Change::Place { path: at("placed"), before: state(&at("placed")), after: state(&staged), staged },
        Change::Remove { path: at("removed"), before: state(&at("removed")) },
        Change::Move { from: at("moved"), to: at("target"), before: state(&at("moved")) },
    ];
    let call = bench.carry_out(&changes).unwrap();
    let done = snapshot(&bench.root(), Closeness::Exact);
    let undo = bench.undo(&call).unwrap();
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
    bench.undo(&undo).unwrap();
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), done);
    // What stood before a change that fails is back.
    let directory = Change::Remove { path: at("directory"), before: state(&at("directory")) };
    let written =
        Change::Write { path: at("written"), content: b"x\n".to_vec(), before: state(&at("written")), mode: None };
    let error = bench.carry_out(&[written, directory]).unwrap_err();
    assert!(error.message.contains("cannot be moved as a whole") && error.hint.is_some(), "{error:?}");
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), done);
}

#[test]
fn files_of_a_lower_layer_are_changed_and_undone() {
    let bench = Bench::new();
    for name in ["written", "placed", "removed", "moved", "directory/inner"] {
        bench.file(name, format!("old {name}\n"));
    }
    let layer =
        haft_sandbox::layer::Layer::create(&tempfile::tempdir_in(memory()).unwrap().keep(), &bench.dir).unwrap();
    let mount = layer.work.with_file_name("mount");
    std::fs::create_dir(&mount).unwrap();
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "{}\nHAFT_OVERLAY='{}' exec '{}' --exact undo::overlay::inside --nocapture",
        mounting(&layer, &mount),
        mount.parent().unwrap().display(),
        exe.display()
    );
    let _ = overlaid(&["sh", "-ec", &script]);
    haft_sandbox::layer::remove_all(mount.parent().unwrap()).unwrap();
}

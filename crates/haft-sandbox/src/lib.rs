//! The kernel as a warden: what a program may touch, and what of its changes is kept.
//!
//! A [`Confinement`] says what a program may reach and use up. A [`Backend`] turns it into a [`Plan`] that
//! says, permission by permission, by what it is enforced, and starts programs under it. [`Linux`] does so
//! with namespaces, Landlock and seccomp, without any external program; [`Bare`] enforces nothing and says
//! so. A plan that cannot be enforced is an error, never a weaker plan.
//!
//! Of what is shipped, this is the only crate with unsafe code, and all of it is in `linux/sys.rs`. (The
//! attacker of the escape tests has its own.)

pub mod backend;
pub mod bare;
pub mod confinement;
pub mod faults;
pub mod layer;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod net;
pub mod roots;
pub mod standing;
pub mod watch;

pub use backend::{Backend, End, Plan, Program, Run, SandboxError, Stdio, Usage, backend};
pub use bare::Bare;
pub use confinement::{Bounds, Confinement, Network, Writes};
#[cfg(target_os = "linux")]
pub use linux::Linux;
pub use standing::{Held, Level, Machine, Mechanism, Standing};

//! Getting servers onto a machine that lacks them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;
use onceonly_test_servers::missing;

const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs those of the `needed` packages that are missing, where that is ours to do, and otherwise
/// says what to install, or which variables to set instead.
pub(crate) fn servers(needed: &[&str], variables: &[&str]) -> io::Result<()> {
    let mut missing = missing();
    missing.retain(|package| needed.contains(package));
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let debian = Path::new("/usr/bin/apt-get").exists();
    if !(geteuid().is_root() && debian) {
        return Err(io::Error::other(format!(
            "missing servers: `apt-get install -y {packages}` as root (on Debian or Ubuntu), or set {} to \
             servers of your own, or ask for less: `cargo xtask test --only sqlite`",
            variables.join(", ")
        )));
    }
    eprintln!("xtask: installing {packages}");
    let quiet = Quiet::new()?;
    let apt = |arguments: &[&str]| -> io::Result<()> {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "apt-get {} failed: {status}",
                arguments.join(" ")
            )))
        }
    };
    apt(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(&missing);
    apt(&install)?;
    drop(quiet);
    Ok(())
}

/// Keeps apt from starting servers and from creating clusters of its own.
struct Quiet {
    policy: bool,
    clusters: bool,
}

const CLUSTERS: &str = "/etc/postgresql-common/createcluster.d/onceonly.conf";

impl Quiet {
    fn new() -> io::Result<Self> {
        let policy = !Path::new(POLICY).exists();
        if policy {
            fs::write(POLICY, "#!/bin/sh\nexit 101\n")?;
            fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        }
        let clusters = !Path::new("/etc/postgresql-common").exists();
        if clusters {
            fs::create_dir_all("/etc/postgresql-common/createcluster.d")?;
            fs::write(CLUSTERS, "create_main_cluster = false\n")?;
        }
        Ok(Self { policy, clusters })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.policy {
            let _ = fs::remove_file(POLICY);
        }
        if self.clusters {
            let _ = fs::remove_file(CLUSTERS);
        }
    }
}

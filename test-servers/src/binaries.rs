//! Where the servers' programs are.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// What to install on Debian or Ubuntu to have all servers.
pub const DEBIAN_PACKAGES: [&str; 3] = ["postgresql", "mariadb-server", "pgbouncer"];

/// The programs that start a MySQL or MariaDB server, the preferred one first.
pub(crate) const MYSQL_SERVERS: [&str; 2] = ["mariadbd", "mysqld"];

/// The Debian packages whose programs were not found here.
#[must_use]
pub fn missing() -> Vec<&'static str> {
    let programs: [&[&str]; 3] = [&["initdb"], &MYSQL_SERVERS, &["pgbouncer"]];
    programs
        .into_iter()
        .zip(DEBIAN_PACKAGES)
        .filter(|(alternatives, _)| find_any(alternatives).is_err())
        .map(|(_, package)| package)
        .collect()
}

/// The path of a server's program, looked up in PATH and where Debian puts it.
pub(crate) fn find(program: &str) -> io::Result<PathBuf> {
    find_any(&[program])
}

/// The path of the first of these programs that is installed.
pub(crate) fn find_any(programs: &[&str]) -> io::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = postgres_folders();
    folders.extend(env::split_paths(&path));
    folders.extend(["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(PathBuf::from));
    programs
        .iter()
        .flat_map(|program| folders.iter().map(move |folder| folder.join(program)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "`{}` is not installed: run `apt-get install -y {}` as root, or \
                     `cargo xtask test`, which does that where it may",
                    programs.join("` or `"),
                    DEBIAN_PACKAGES.join(" ")
                ),
            )
        })
}

/// The newest version first. They come before PATH, where a distribution puts wrappers.
fn postgres_folders() -> Vec<PathBuf> {
    let Ok(versions) = Path::new("/usr/lib/postgresql").read_dir() else {
        return Vec::new();
    };
    let mut versions: Vec<(u32, PathBuf)> = versions
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|(_, path)| path.join("bin"))
        .collect()
}

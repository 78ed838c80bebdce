//! One directory per server, removed with it, or by the next run if its process was killed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::unistd::{User, geteuid};

const PREFIX: &str = "onceonly-";

/// The directory of one server.
///
/// It is in `/var/tmp` (or `ONCEONLY_RUN_DIR`): on a disk, where fsync means something, and short,
/// since the path of a socket holds about 107 bytes.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl RunDir {
    /// A new directory, owned by the user that the server runs as.
    pub(crate) fn new(owner: Option<&User>) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = env::var_os("ONCEONLY_RUN_DIR").map_or_else(|| "/var/tmp".into(), PathBuf::from);
        fs::create_dir_all(&root)?;
        if statfs(&root).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC) {
            return Err(io::Error::other(format!(
                "{} is on tmpfs, where fsync does nothing: set ONCEONLY_RUN_DIR to a folder on a disk",
                root.display()
            )));
        }
        sweep(&root);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("{PREFIX}{}-{count}", process::id()));
        let lock = lock(&lock_path(&path))?;
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let dir = Self { path, _lock: lock };
        if let Some(owner) = owner {
            dir.give(&dir.path, owner)?;
        }
        Ok(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it that only the server's user may read, as PostgreSQL asks of a private key.
    pub(crate) fn write(
        &self,
        name: &str,
        text: &str,
        owner: Option<&User>,
    ) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some(owner) = owner {
            self.give(&path, owner)?;
        }
        Ok(path)
    }

    fn give(&self, path: &Path, owner: &User) -> io::Result<()> {
        chown(path, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_file(lock_path(&self.path));
    }
}

/// The user that a server runs as: `name` when this process is root, else nobody else.
pub(crate) fn server_user(name: &str) -> io::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    match User::from_name(name)? {
        Some(user) => Ok(Some(user)),
        None => Err(io::Error::other(format!(
            "there is no user `{name}` to run the server as"
        ))),
    }
}

fn lock_path(dir: &Path) -> PathBuf {
    dir.with_extension("lock")
}

fn lock(path: &Path) -> io::Result<Flock<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}

/// Removes the directories whose process is gone: their locks are free.
fn sweep(root: &Path) {
    for entry in root.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        let is_lock = path
            .extension()
            .is_some_and(|extension| extension == "lock");
        if ours
            && is_lock
            && let Ok(_lock) = lock(&path)
        {
            let _ = fs::remove_dir_all(path.with_extension(""));
            let _ = fs::remove_file(&path);
        }
    }
}

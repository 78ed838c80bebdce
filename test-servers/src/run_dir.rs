//! One directory per server, removed with it, or by the next run if its process was killed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{self, Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::unistd::{User, geteuid};

const PREFIX: &str = "onceonly-";

/// The longest name that a server puts into its directory for a socket, with the slash before it.
const SOCKET_NAME: usize = "/.s.PGSQL.65535".len();
/// What `sockaddr_un` holds, less the final NUL.
const SOCKET_PATH: usize = 107;

/// Who may read a file in a [`RunDir`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Readers {
    /// Only the server's user, as PostgreSQL asks of a private key.
    Server,
    /// Every user.
    All,
}

/// The directory of one server.
///
/// It is in `/var/tmp` (or `ONCEONLY_RUN_DIR`): on a disk, where fsync means something, and short,
/// for the sockets in it. Whoever holds the lock on the directory owns it.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl RunDir {
    /// A new directory, owned by the user that the server runs as.
    pub(crate) fn new(owner: Option<&User>) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = root(owner)?;
        sweep(&root);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{PREFIX}{}-{count}", process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            // Another process's sweep may take a directory that is not locked yet: then the next one.
            let Some(lock) = lock(&path)? else { continue };
            let dir = Self { path, _lock: lock };
            if dir.path.as_os_str().len() + SOCKET_NAME > SOCKET_PATH {
                return Err(io::Error::other(format!(
                    "{} is too long for the path of a socket: set ONCEONLY_RUN_DIR to a shorter one",
                    dir.path.display()
                )));
            }
            fs::set_permissions(&dir.path, fs::Permissions::from_mode(0o755))?;
            give(&dir.path, owner)?;
            return Ok(dir);
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it that belongs to the server's user.
    pub(crate) fn create(&self, name: &str, owner: Option<&User>) -> io::Result<()> {
        let path = self.path.join(name);
        fs::create_dir(&path)?;
        give(&path, owner)
    }

    /// Writes a file that belongs to the server's user.
    pub(crate) fn write(
        &self,
        name: &str,
        text: &str,
        readers: Readers,
        owner: Option<&User>,
    ) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, text)?;
        let mode = match readers {
            Readers::Server => 0o600,
            Readers::All => 0o644,
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        give(&path, owner)?;
        Ok(path)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a directory into which a server that is just stopping may still write.
fn remove(path: &Path) {
    for _ in 0..100 {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                thread::sleep(Duration::from_millis(20));
            }
            _ => return,
        }
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
            "there is no user `{name}` to run the server as, and it refuses root: create that user, or \
             run this as an ordinary one"
        ))),
    }
}

/// The folder of all run directories, once it is known to serve.
fn root(owner: Option<&User>) -> io::Result<PathBuf> {
    let root = env::var_os("ONCEONLY_RUN_DIR").map_or_else(|| "/var/tmp".into(), PathBuf::from);
    let root = path::absolute(root)?;
    fs::create_dir_all(&root)?;
    if statfs(&root).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC) {
        return Err(io::Error::other(format!(
            "{} is on tmpfs, where fsync does nothing: set ONCEONLY_RUN_DIR to a folder on a disk",
            root.display()
        )));
    }
    if let Some(owner) = owner {
        for folder in root.ancestors() {
            if folder.metadata()?.mode() & 0o001 == 0 {
                return Err(io::Error::other(format!(
                    "{} is closed to the user `{}` that the server runs as: set ONCEONLY_RUN_DIR to a \
                     folder that every user may enter",
                    folder.display(),
                    owner.name
                )));
            }
        }
    }
    Ok(root)
}

fn give(path: &Path, owner: Option<&User>) -> io::Result<()> {
    owner.map_or(Ok(()), |owner| {
        chown(path, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))
    })
}

/// The lock of the directory at `path`; `None` when someone else has it, or has removed it.
fn lock(path: &Path) -> io::Result<Option<Flock<File>>> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result?,
    };
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => {
            let locked = lock.metadata()?.ino();
            let is_there = path.metadata().is_ok_and(|there| there.ino() == locked);
            Ok(is_there.then_some(lock))
        }
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// Removes the directories whose process is gone: their locks are free.
fn sweep(root: &Path) {
    for entry in root.read_dir().into_iter().flatten().flatten() {
        let named = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        let ours = entry.metadata().is_ok_and(|found| {
            found.is_dir() && (geteuid().is_root() || found.uid() == geteuid().as_raw())
        });
        if named
            && ours
            && let Ok(Some(_lock)) = lock(&entry.path())
        {
            remove(&entry.path());
        }
    }
}

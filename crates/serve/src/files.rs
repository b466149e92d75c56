//! Files below a folder, and no others: the kernel resolves each path below it, and refuses `..` and symbolic links that lead out
//! (openat2(2), RESOLVE_BENEATH). So no change of the folder in between leads elsewhere.

use crate::refusal::Refusal;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio_util::io::ReaderStream;

/// Size in bytes of the pieces in which a file is sent.
const PIECE: usize = 128 << 10;

/// A folder whose files are served.
pub(crate) struct Files {
    folder: OwnedFd,
}

/// What a path leads to.
pub(crate) enum Found {
    /// A file, its length in bytes and its type for browsers.
    File(File, u64, &'static str),
    /// A folder that was named without a slash at its end, from which links would lead elsewhere.
    Folder,
}

impl Files {
    /// The files below a folder.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn below(folder: &Path) -> io::Result<Files> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Files { folder: rustix::fs::open(folder, flags, Mode::empty())? })
    }

    /// What this path leads to, with slashes. That of a folder ends with one, and stands for its `index.html`.
    ///
    /// # Errors
    /// It leads out of the folder, or to nothing that can be sent.
    pub(crate) fn find(&self, path: &str) -> Result<Found, Refusal> {
        if path.split('/').any(|part| part == "..") {
            return Err(Refusal::forbidden("a path with `..`"));
        }
        let name =
            if path.is_empty() || path.ends_with('/') { format!("{path}index.html") } else { path.into() };
        let file = self.open(&name)?;
        let about = file.metadata().map_err(|_| Refusal::missing())?;
        match about.is_file() {
            true => Ok(Found::File(file, about.len(), kind_of(&name))),
            false if about.is_dir() => Ok(Found::Folder),
            false => Err(Refusal::forbidden("what is neither a file nor a folder")),
        }
    }

    fn open(&self, name: &str) -> Result<File, Refusal> {
        // A pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.folder, name, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file.into()),
            Err(Errno::XDEV | Errno::LOOP) => {
                Err(Refusal::forbidden("a symbolic link that leads out of the folder"))
            }
            Err(Errno::ACCESS | Errno::PERM) => Err(Refusal::forbidden("a file that cannot be read")),
            Err(_) => Err(Refusal::missing()),
        }
    }
}

/// The answer with a file, which is sent piece by piece.
pub(crate) fn send(file: File, length: u64, kind: &'static str) -> Response<Body> {
    let stream = ReaderStream::with_capacity(tokio::fs::File::from_std(file), PIECE);
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

/// The type of a file of this name, by which a browser shows it.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" => "application/json",
        "csv" => "text/csv; charset=utf-8",
        "toml" | "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

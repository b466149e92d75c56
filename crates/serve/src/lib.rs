//! Results as pages of a server on this machine: a list of all results below a folder, its search, their reports, and comparisons.
//!
//! A folder goes in; an address comes out, at which a browser on this machine finds the list. Nothing is written into the folder, unless
//! pins and notes may be. `routes.rs` is the file to open first; `guard.rs` says which requests are answered at all.
#![forbid(unsafe_code)]

mod compared;
mod files;
mod find;
mod guard;
mod list;
mod page;
mod query;
mod refusal;
mod routes;
mod row;
mod secret;
mod site;
mod verdict;

pub use compared::Compare;

use site::Site;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::net;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// A server that listens on this machine alone.
pub struct Server {
    site: Arc<Site>,
    listener: TcpListener,
    runtime: Runtime,
    stop: Arc<Notify>,
}

impl Server {
    /// A server of the results below a folder, at this port of the loopback address; port 0 is any that is free. With `writes` its page
    /// writes pins and notes. `compare` writes the pages of comparisons.
    ///
    /// # Errors
    /// The folder cannot be opened, or the port is taken.
    pub fn new(folder: &Path, port: u16, writes: bool, compare: Box<Compare>) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let site = Site::new(folder, listener.local_addr()?.port(), writes, compare)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Server { site: Arc::new(site), listener, runtime, stop: Arc::default() })
    }

    /// The address of the list, with the token that it needs.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.site.hosts[0], self.site.of_list)
    }

    /// What ends [`Server::run`], from another thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let stop = Arc::clone(&self.stop);
        move || stop.notify_one()
    }

    /// Answers requests until it is stopped. Answers that are under way then are given up.
    ///
    /// # Errors
    /// The system refuses to listen any longer.
    pub fn run(self) -> io::Result<()> {
        let Server { site, listener, runtime, stop } = self;
        let router = routes::router(Arc::clone(&site));
        let done = runtime.block_on(async {
            let listener = net::TcpListener::from_std(listener)?;
            tokio::select! {
                done = axum::serve(listener, router) => done,
                () = stop.notified() => Ok(()),
            }
        });
        runtime.shutdown_background();
        done
    }
}

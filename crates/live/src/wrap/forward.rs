//! Ports of the far end that this host answers: each connection there is relayed to the same port at this host's loopback address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use weir_base::not_started;
use weir_linux::namespace::Namespace;

/// Most connections that are relayed at once; each has two threads.
const MOST: usize = 1000;
/// Pause after a connection could not be accepted, when descriptors are short for example.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens at a port of a namespace, for both IP versions if `v6`, and relays connections to the same port of the namespace that the
/// calling thread is in, until this process ends.
///
/// # Errors
/// The kernel's.
pub(super) fn forward(far: &Namespace, port: u16, v6: bool) -> io::Result<()> {
    let any = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let listener = far.inside(|| TcpListener::bind(SocketAddr::new(any, port)))?;
    let serve = move || {
        // Each connection that is relayed holds a copy.
        let open = Arc::new(());
        loop {
            match listener.accept() {
                Ok((near, _)) if Arc::strong_count(&open) <= MOST => {
                    let held = open.clone();
                    let relay = move || {
                        // A connection that breaks, or that nobody answers, is closed; the program sees that.
                        let _ = relay(&near, port);
                        drop(held);
                    };
                    // Without a thread the connection is closed with what was to run there.
                    let _ = std::thread::Builder::new().name("weir-forward".into()).spawn(relay);
                }
                Ok(_) => {}
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    };
    std::thread::Builder::new().name("weir-forward".into()).spawn(serve).map_err(not_started)?;
    Ok(())
}

/// Joins a connection to one to a port of this host, until both directions have ended.
fn relay(near: &TcpStream, port: u16) -> io::Result<()> {
    let host = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    for connection in [near, &host] {
        connection.set_nodelay(true)?;
    }
    std::thread::scope(|scope| {
        let back = std::thread::Builder::new().spawn_scoped(scope, || copy(&host, near));
        let there = copy(near, &host);
        if back.is_err() || there.is_err() {
            // The other direction ends too.
            let _ = host.shutdown(Shutdown::Both);
        }
        there
    })
}

/// Copies until the end, which it passes on.
fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)
}

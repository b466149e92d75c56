//! `weir overlay receive`: receives files from other sites' hosts. Each session has a thread.

use super::args::ReceiveArgs;
use super::connection::{Come, Connection};
use super::from_group::Membership;
use super::group::group;
use super::server::Server;
use super::session::Session;
use crate::failure::Failure;
use crate::frame::{Common, Daemon, Process, log};
use crate::output::print;
use crate::transfer::{Ask, Folder, Frame};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a sender may be silent.
const SILENCE: Duration = Duration::from_secs(120);
/// Interval between checks whether it is to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Daemon for ReceiveArgs {
    const COMMAND: &'static str = "overlay receive";
    const KIND: &'static str = "receiver over the overlay";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        receive(self, process)
    }
}

fn receive(args: &ReceiveArgs, process: &Process) -> Result<(), Failure> {
    let bad =
        |what: String, error: io::Error, help: &str| Failure::bad_input(format!("{what}: {error}"), help);
    let folder = Folder::open(&args.folder, args.quota.map(|quota| quota.get()))
        .map_err(|error| bad(args.folder.display().to_string(), error, "name a folder for received files"))?;
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        bad(format!("cannot listen on {}", args.listen), error, "--listen ADDRESS:PORT names another")
    })?;
    let memberships = args.group.iter().map(|text| member(text)).collect::<Result<Vec<_>, _>>()?;
    let failed = |error: io::Error| Failure::failed(error.to_string());
    // A connection that is gone before it is accepted keeps nobody waiting.
    listener.set_nonblocking(true).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?.to_string();
    process.name(&at)?;
    let server = Arc::new(Server::new(folder, args.from.clone(), process.stop()));
    let here = server.clone();
    process.on_hang_up(move |args: ReceiveArgs| {
        here.configure(args.from, args.quota.map(|quota| quota.get()));
        Ok(())
    });
    let (here, shown_at) = (server.clone(), at.clone());
    process.begin(move || here.status(&shown_at))?;
    for membership in memberships {
        let here = server.clone();
        let thread = std::thread::Builder::new().spawn(move || membership.receive(&here));
        thread.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    }
    print(&format!("listening on {at}\n"))?;
    while !process.stops() {
        let mut ready = [PollFd::new(&listener, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut ready, Some(&LOOK)), Ok(1..)) {
            continue;
        }
        let Ok((stream, from)) = listener.accept() else { continue };
        let from = from.ip().to_canonical();
        // One too many hears the end of its connection.
        server.spawn(move |server| {
            log::debug(&format!("{from} has connected"));
            if let Err(error) = serve(server, stream, from) {
                log::error(&format!("weir: {from}: {error}"));
            }
        });
    }
    server.wait();
    Ok(())
}

/// The membership in a group that an argument names.
fn member(text: &str) -> Result<Membership, Failure> {
    let group = group(text)?;
    Membership::new(group).map_err(|error| {
        let help = "the node of this host must run, and its file must list the group in `groups`; another port is written as 239.1.2.3:7766";
        Failure::bad_input(format!("cannot join {group}: {error}"), help)
    })
}

/// Receives what one sender sends, or tells it why not.
fn serve(server: &Server, stream: TcpStream, from: IpAddr) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    let mut session = Session::new(server, from);
    let went = session.receive(&mut connection);
    if let Err(error) = &went {
        // What was received is free for the next attempt before the sender hears of it.
        drop(session);
        connection.refuse(error);
    }
    went
}

impl Session<'_> {
    /// Receives files until the sender ends the connection.
    fn receive(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut is_asked = false;
        let mut heard = Instant::now();
        loop {
            if self.look(connection)? {
                heard = Instant::now();
                continue;
            }
            match connection.wait()? {
                Come::End => return Ok(()),
                Come::Bytes => heard = Instant::now(),
                Come::Nothing if heard.elapsed() > SILENCE => {
                    return Err(io::Error::other("the sender has been silent for too long"));
                }
                Come::Nothing => continue,
            }
            while let Some(frame) = connection.talk.next()? {
                let answers = match frame {
                    Frame::Ask(Ask::Files) if !is_asked => {
                        is_asked = true;
                        vec![]
                    }
                    Frame::Message(message) if is_asked => self.files.hear(message, self.server.folder())?,
                    Frame::Block(header, payload) if is_asked => {
                        self.files.block(header, payload, self.server.folder())?
                    }
                    _ => return Err(io::Error::other("it says what a sender has no reason to say")),
                };
                answers.iter().try_for_each(|message| connection.talk.say(message))?;
            }
            connection.flush()?;
        }
    }
}

//! The connections of a group's members to its sender: each is accepted if it names the session, and has a thread that reads and one that writes, so
//! that a slow member holds up nobody.

use super::connection::{Come, Connection};
use super::group::GROUP_SESSION;
use crate::frame::log;
use crate::transfer::{Frame, guard};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_circuit::transfer::Message;

/// Most connections at a time.
const MOST: usize = 256;
/// How long a host may take to name its session.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a member does.
pub(super) enum Event {
    /// It has named the session.
    Joined(usize),
    /// It has said something.
    Said(usize, Message),
    /// Its connection has ended.
    Left(usize),
}

/// A member.
struct Member {
    address: IpAddr,
    stream: TcpStream,
    says: Sender<Message>,
}

/// All members, by number.
type Shared = Arc<Mutex<BTreeMap<usize, Member>>>;

/// The members of a session.
pub(super) struct Members {
    port: u16,
    members: Shared,
    events: Receiver<Event>,
}

impl Members {
    /// Listens for members of this session.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn listen(session: u64) -> io::Result<Members> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let port = listener.local_addr()?.port();
        let (to_sender, events) = mpsc::channel();
        let members = Shared::default();
        let shared = members.clone();
        let accept = move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (shared, to_sender) = (shared.clone(), to_sender.clone());
                let Ok(stream) = stream else { continue };
                if guard(&shared).len() >= MOST {
                    continue;
                }
                let serve = move || {
                    if let Err(error) = serve(number, stream, session, &shared, &to_sender) {
                        log::debug(&format!("a connection has ended: {error}"));
                    }
                    // Nobody listens any more when the transfer is over.
                    let _ = to_sender.send(Event::Left(number));
                };
                // Without a thread the connection ends, and the member tries again.
                drop(std::thread::Builder::new().spawn(serve));
            }
        };
        std::thread::Builder::new().spawn(accept)?;
        Ok(Members { port, members, events })
    }

    /// The port of TCP at which they join.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What a member has done, if one does something within this time.
    pub(super) fn event(&self, within: Duration) -> Option<Event> {
        match within.is_zero() {
            true => self.events.try_recv().ok(),
            false => self.events.recv_timeout(within).ok(),
        }
    }

    /// The numbers of all members.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> + use<> {
        guard(&self.members).keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// The address of a member.
    pub(super) fn address(&self, number: usize) -> Option<IpAddr> {
        guard(&self.members).get(&number).map(|member| member.address)
    }

    /// Says a message to those members for which this holds.
    pub(super) fn say(&self, to: impl Fn(usize) -> bool, message: &Message) {
        for (_, member) in guard(&self.members).iter().filter(|(number, _)| to(**number)) {
            // If its connection has ended, that is told as an event.
            let _ = member.says.send(message.clone());
        }
    }

    /// Ends the earlier connections of a member that has joined again. Returns their numbers.
    pub(super) fn welcome(&self, number: usize) -> Vec<usize> {
        let address = self.address(number);
        let is_earlier = |(at, member): (&usize, &Member)| {
            (*at != number && Some(member.address) == address).then_some(*at)
        };
        let earlier: Vec<usize> = guard(&self.members).iter().filter_map(is_earlier).collect();
        for earlier in &earlier {
            self.leave(*earlier);
        }
        earlier
    }

    /// Ends the connection of a member. Returns its address; `None` if it has left already.
    pub(super) fn leave(&self, number: usize) -> Option<IpAddr> {
        let member = guard(&self.members).remove(&number)?;
        let _ = member.stream.shutdown(Shutdown::Both);
        Some(member.address)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for number in self.all() {
            self.leave(number);
        }
    }
}

/// Reads what a member says until its connection ends.
fn serve(
    number: usize,
    mut stream: TcpStream,
    session: u64,
    members: &Shared,
    to_sender: &Sender<Event>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut named = [0; 16];
    stream.read_exact(&mut named)?;
    if named[..8] != GROUP_SESSION || named[8..] != session.to_be_bytes() {
        return Err(io::Error::other("it names another session"));
    }
    let address = stream.peer_addr()?.ip();
    let mut writing = Connection::new(stream.try_clone()?)?;
    let (says, to_say) = mpsc::channel::<Message>();
    std::thread::Builder::new().spawn(move || {
        // When it fails, the reading thread hears the end.
        while let Ok(message) = to_say.recv() {
            if writing.say(&message).is_err() {
                let _ = writing.stream.shutdown(Shutdown::Both);
                break;
            }
        }
    })?;
    guard(members).insert(number, Member { address, stream: stream.try_clone()?, says });
    let gone = || io::Error::other("the transfer is over");
    to_sender.send(Event::Joined(number)).map_err(|_| gone())?;
    let mut connection = Connection::new(stream)?;
    loop {
        if connection.wait()? == Come::End {
            return Ok(());
        }
        while let Some(frame) = connection.talk.next()? {
            let Frame::Message(message) = frame else {
                return Err(io::Error::other("it says what a receiver has no reason to say"));
            };
            to_sender.send(Event::Said(number, message)).map_err(|_| gone())?;
        }
    }
}

//! Masquerading: packets of hosts behind a router have the router's address.

use crate::place::{Addresses, MOMENT, PATIENCE, Place, skipped, v4, v6};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;
use weir_linux::namespace::{Namespace, sysctl};
use weir_linux::nft::{Only, Table};

pub(crate) const TESTS: [(&str, fn()); 4] = [
    ("what_a_device_forwards_can_be_bound_to_some_others", bound_to_some),
    ("a_masqueraded_datagram_has_the_routers_address_and_its_answer_arrives", || answered(&v4())),
    ("a_masqueraded_datagram_over_ipv6_has_the_routers_address_and_its_answer_arrives", || {
        match sysctl("ipv6.conf.all.disable_ipv6") {
            Some(_) => answered(&v6()),
            None => println!("the kernel has no IPv6"),
        }
    }),
    ("a_table_has_a_name_once_and_an_error_says_which_part", a_name_is_taken_once),
];

/// A datagram from the client to the server, and the answer: who the server thinks has sent it. `None` if no answer arrives.
fn asked(place: &Place, at: &Addresses) -> Option<IpAddr> {
    let bound = |address: IpAddr| move || UdpSocket::bind(SocketAddr::new(address, 0));
    let server = place.server.inside(bound(at.server)).unwrap();
    let client = place.client.inside(bound(at.client)).unwrap();
    server.set_read_timeout(Some(MOMENT)).unwrap();
    client.set_read_timeout(Some(MOMENT)).unwrap();
    let (mut bytes, begun) = ([0; 100], Instant::now());
    // The first datagrams are lost while hosts do not know each other's link addresses yet.
    let from = loop {
        client.send_to(b"question", server.local_addr().unwrap()).unwrap();
        match server.recv_from(&mut bytes) {
            Ok((_, from)) => break from,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "the question does not arrive: {error}"),
        }
    };
    // The server has no route to the client.
    let _ = server.send_to(b"answer", from);
    client.recv_from(&mut bytes).ok().map(|_| from.ip())
}

/// Whether a datagram from the client arrives at the server.
fn arrives(place: &Place, at: &Addresses) -> bool {
    let bound = |address: IpAddr| move || UdpSocket::bind(SocketAddr::new(address, 0));
    let server = place.server.inside(bound(at.server)).unwrap();
    let client = place.client.inside(bound(at.client)).unwrap();
    server.set_read_timeout(Some(MOMENT)).unwrap();
    client.send_to(b"question", server.local_addr().unwrap()).unwrap();
    server.recv_from(&mut [0; 100]).is_ok()
}

fn answered(at: &Addresses) {
    let place = Place::new(at);
    assert_eq!(asked(&place, at), None, "without a table the server cannot answer");
    // The prefix has bits beyond whole bytes: 10.9.0.0/30, fd00:1::/126.
    let text = if at.client.is_ipv4() { "10.9.0.0/30" } else { "fd00:1::/126" };
    let (prefix, other) = (text.parse().unwrap(), text.replace("0/30", "4/30").replace("::/126", "::4/126"));
    let made = |prefix, device: Option<&'static str>| {
        place.router.inside(move || Ok(Table::masquerade("weir-try", &prefix, device, None)?))
    };
    let table = match made(prefix, Some("to-server")) {
        Err(error) => return skipped(&error.to_string()),
        Ok(table) => table,
    };
    assert_eq!(asked(&place, at), Some(at.beside_server));
    drop(table);
    assert_eq!(asked(&place, at), None, "the table goes with its socket");
    let anywhere = made(prefix, None).unwrap();
    assert_eq!(asked(&place, at), Some(at.beside_server));
    drop(anywhere);
    for (what, prefix, device) in
        [("another device", prefix, "to-client"), ("another prefix", other.parse().unwrap(), "to-server")]
    {
        let _table = made(prefix, Some(device)).unwrap();
        assert_eq!(asked(&place, at), None, "{what}");
    }
}

fn bound_to_some() {
    let at = v4();
    let place = Place::new(&at);
    let from = ["to-client".to_owned()];
    let made = |to: &'static str| {
        let source = at.client.into();
        place
            .router
            .inside(|| Ok(Table::masquerade("weir-try", &source, None, Some(&Only { from: &from, to }))?))
    };
    let Ok(to_server) = made("to-s") else { return skipped("the kernel cannot masquerade") };
    assert_eq!(asked(&place, &at), Some(at.beside_server));
    drop(to_server);
    let _elsewhere = made("to-x").unwrap();
    assert!(!arrives(&place, &at));
}

fn a_name_is_taken_once() {
    let namespace = Namespace::new().unwrap();
    let source = "10.0.0.0/8".parse().unwrap();
    let made = |name: &str| namespace.inside(|| Ok(Table::masquerade(name, &source, None, None))).unwrap();
    let Ok(first) = made("weir-a") else { return skipped("the kernel cannot masquerade") };
    let refused = made("weir-a").unwrap_err();
    let parts: Vec<&str> = refused.parts().iter().map(|(part, _)| part.as_str()).collect();
    assert_eq!(parts[0], "the table weir-a", "{refused}");
    let _second = made("weir-b").unwrap();
    drop(first);
    let _again = made("weir-a").unwrap();
}

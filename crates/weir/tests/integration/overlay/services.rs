//! What the keys of services and of neighbours do with programs' datagrams.

use super::*;

/// A service whose urgent datagrams have a deadline.
const CALL: &str = "[[service]]\nname = 'call'\nports = 5000\ndeadline = '2 s'\nef_deadline = '500 ms'\n";

#[test]
fn datagrams_that_a_program_marks_ef_have_the_deadline_that_the_service_gives_them() {
    let Some(triangle) = Triangle::new() else { return };
    triangle.write(0, CALL);
    let _nodes = triangle.start_all();
    let (from, to) = (triangle.socket(0, 4000), triangle.socket(1, 5000));
    deliver(&from, &to, b"not urgent");
    rustix::net::sockopt::set_ip_tos(&from, 46 << 2).unwrap();
    deliver(&from, &to, b"urgent");
    let status = triangle.status(0);
    let flows = status["flows"].as_array().unwrap().iter();
    let mut deadlines: Vec<f64> = flows
        .filter(|flow| flow["service"] == "call")
        .map(|flow| flow["deadline_ms"].as_f64().unwrap())
        .collect();
    deadlines.sort_by(f64::total_cmp);
    assert_eq!(deadlines, [500.0, 2000.0]);
}

#[test]
fn a_neighbour_that_floods_is_held_to_its_quota_and_others_reach_the_node() {
    let Some(triangle) = Triangle::new() else { return };
    let file = std::fs::read_to_string(triangle.path(0)).unwrap();
    let (neighbour, quota) = ("[[neighbour]]\nname = 'b'\n", "quota = { packets = 100 }\n");
    std::fs::write(triangle.path(0), file.replace(neighbour, &format!("{neighbour}{quota}"))).unwrap();
    let _nodes = triangle.start_all();
    let (flood, other, to) = (triangle.socket(1, 4000), triangle.socket(2, 4000), triangle.socket(0, 5000));
    deliver(&flood, &to, b"before");
    // Without a bound, thousands a second: some go by c, which has none.
    let counted = |name: &str| {
        let neighbours = triangle.status(0)["neighbours"].take();
        neighbours.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()["over_quota"]
            .as_u64()
            .unwrap()
    };
    let begun = Instant::now();
    while counted("b") < 100 {
        for _ in 0..200 {
            flood.send_to(&bytes(200), to.local_addr().unwrap()).unwrap();
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is over the quota");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(counted("c"), 0);
    for number in 0..20_u8 {
        deliver(&other, &to, &[number]);
    }
    // Its messages still count: it stays a neighbour.
    assert_eq!(are_up(&triangle.status(0)), 2);
    assert_eq!(triangle.status(0)["packets"]["over_quota"], counted("b"));
    let metrics = triangle.inside(0, || {
        let mut stream = TcpStream::connect(METRICS).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: {METRICS}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(metrics.contains("over_quota"), "{metrics}");
    assert!(triangle.said(0, &["overlay", "status"]).contains("over quota"));
}

//! The verifier finds what is wrong with an answer.

use super::{always, named, stand_in};
use weir_base::Span;
use weir_optimum::{Answer, Delivery, Mode, Network, Piece, Problem, Session, Violation, verify};

fn right() -> (Network, [Session; 1], Answer) {
    let network = stand_in("grid-5x5");
    let sessions = [named(&network, "1", &["5", "21"])];
    let answer =
        Problem::new(&network, &sessions, Mode::Coded).unwrap().capacity(Span::from_millis(49), &mut always);
    assert!(verify(&network, &sessions, &answer).is_ok());
    (network, sessions, answer)
}

fn paths(answer: &mut Answer) -> &mut Vec<Piece> {
    match &mut answer.sessions[0].delivery {
        Delivery::Paths(lists) => &mut lists[0],
        Delivery::Trees(_) => panic!("with coding there are paths"),
    }
}

fn violation(change: impl FnOnce(&mut Answer)) -> Violation {
    let (network, sessions, mut answer) = right();
    change(&mut answer);
    verify(&network, &sessions, &answer).unwrap_err()
}

#[test]
fn a_path_that_is_late_or_broken_is_found() {
    assert!(matches!(violation(|answer| answer.deadline = Span::from_millis(48)), Violation::Late { .. }));
    assert!(matches!(violation(|answer| paths(answer)[0].delay = Span::ZERO), Violation::Late { .. }));
    assert!(matches!(violation(|answer| paths(answer)[0].links.truncate(1)), Violation::Path { .. }));
    assert!(matches!(violation(|answer| paths(answer)[0].links[0] = 9999), Violation::Path { .. }));
    assert!(matches!(violation(|answer| paths(answer)[0].rate = f64::NAN), Violation::Path { .. }));
}

#[test]
fn a_rate_that_is_not_carried_or_a_link_that_carries_too_much_is_found() {
    assert!(matches!(violation(|answer| answer.sessions[0].rate *= 1.001), Violation::Rate { .. }));
    assert!(matches!(violation(|answer| drop(paths(answer).pop())), Violation::Rate { .. }));
    assert!(matches!(violation(|answer| answer.bounds.lower *= 1.001), Violation::Lower { .. }));
    let twice = |answer: &mut Answer| paths(answer).iter_mut().for_each(|path| path.rate *= 2.0);
    assert!(matches!(violation(twice), Violation::Load { .. }));
}

#[test]
fn an_upper_bound_that_nothing_proves_is_found() {
    assert!(matches!(violation(|answer| answer.bounds.upper *= 0.999), Violation::Upper { .. }));
    let cheaper = |answer: &mut Answer| {
        let lists = answer.prices.sessions[0].iter_mut().flatten();
        lists.for_each(|(_, price)| *price *= 0.999);
    };
    assert!(matches!(violation(cheaper), Violation::Duality { .. }));
    let negative = |answer: &mut Answer| {
        answer.prices.sessions[0].iter_mut().flatten().next().unwrap().1 = f64::NAN;
    };
    assert!(matches!(violation(negative), Violation::Upper { .. }));
}

#[test]
fn a_cut_that_leaks_is_found() {
    let leaky = |answer: &mut Answer| answer.cut.as_mut().unwrap().links.truncate(1);
    assert!(matches!(violation(leaky), Violation::Cut(_)));
}

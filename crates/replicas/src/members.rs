//! The gateways that append to a log, as known from the log.
//!
//! Each applies its own entries, because it alone knows when a batch has ended, and repeatedly logs
//! its position for the others. A gateway that is silent while another logs ten signs counts as
//! lost, and that other one takes over its entries. No clock is involved: if no gateway reaches the
//! log, none is lost.

use std::collections::HashMap;

use windrow_spool::Origin;

use crate::entry::Sign;

/// The number of signs of one gateway, without one of another, after which the other counts as
/// lost.
const SILENT: u32 = 10;

/// The gateway that copies existing rows to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// Another gateway, or unknown.
    Elsewhere,
    /// This gateway.
    Here,
    /// The replica has all rows.
    Done,
}

/// A gateway.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The position of its first entry that was read.
    since: u64,
    /// The sequence number of its last message.
    sequence: u64,
    /// The position before which none of its entries, nor of those that it has taken over, is open;
    /// `None` if none is open.
    from: Option<u64>,
    /// The position of its last entry of rows, or of the last one that it has taken over.
    last: u64,
    /// The number of signs of this gateway since its last message.
    silent: u32,
}

/// The gateways of a log.
#[derive(Debug)]
pub(crate) struct Members {
    own: u64,
    /// True if no other gateway uses the log, so that all other entries are of processes that have
    /// ended.
    alone: bool,
    all: HashMap<u64, Member>,
    /// Lost gateways, each with the position before which its entries have been taken over.
    lost: HashMap<u64, u64>,
    /// The position of this gateway's first sign.
    began: Option<u64>,
    /// The position of the last sign that says that the replica has all rows.
    copied: Option<u64>,
}

impl Members {
    pub(crate) fn new(own: u64, alone: bool) -> Self {
        Self {
            own,
            alone,
            all: HashMap::new(),
            lost: HashMap::new(),
            began: None,
            copied: None,
        }
    }

    /// True if an entry of rows is of a process that has ended or counts as lost, so that its
    /// reader applies it.
    pub(crate) fn is_left(&self, origin: Origin, position: u64) -> bool {
        let taken = self.lost.get(&origin.gateway);
        origin.gateway != self.own && (self.alone || taken.is_some_and(|upto| position < *upto))
    }

    fn heard(&mut self, origin: Origin, position: u64) -> &mut Member {
        let member = self.all.entry(origin.gateway).or_insert(Member {
            since: position,
            ..Member::default()
        });
        member.silent = 0;
        member
    }

    /// Handles an entry of rows.
    pub(crate) fn rows(&mut self, origin: Origin, position: u64) {
        if self.alone || self.is_left(origin, position) {
            return;
        }
        let member = self.heard(origin, position);
        member.from.get_or_insert(position);
        member.last = member.last.max(position);
        member.sequence = member.sequence.max(origin.sequence);
    }

    /// Handles a sign of life. A sign that was overtaken by a later one is ignored.
    pub(crate) fn sign(&mut self, origin: Origin, position: u64, sign: Sign) {
        let member = self.heard(origin, position);
        if origin.sequence < member.sequence {
            return;
        }
        member.sequence = origin.sequence;
        let open = member.from.filter(|_| member.last >= sign.applied);
        member.from = open.map(|from| from.max(sign.applied));
        if sign.leaves {
            member.silent = SILENT - 1;
        }
        let is_gone = sign.leaves && member.from.is_none();
        if sign.copied {
            self.copied = Some(position);
        }
        if origin.gateway == self.own {
            self.began.get_or_insert(position);
            self.count();
        } else if is_gone {
            self.all.remove(&origin.gateway);
        }
    }

    fn count(&mut self) {
        let own = self.own;
        let others = self.all.iter_mut().filter(|(gateway, _)| **gateway != own);
        for (_, member) in others {
            member.silent += 1;
        }
        // A gateway that has left no entries needs no takeover.
        self.all
            .retain(|gateway, m| *gateway == own || m.silent < SILENT || m.from.is_some());
    }

    /// Handles the declaration that a gateway is lost. Returns true if it is this one.
    pub(crate) fn lost(&mut self, by: Origin, gateway: u64, position: u64) -> bool {
        let heir = self.heard(by, position);
        if by.sequence < heir.sequence {
            return false;
        }
        heir.sequence = by.sequence;
        self.taken(by.gateway, gateway, position);
        gateway == self.own
    }

    /// Notes that another gateway applies the entries of a lost one before a position.
    pub(crate) fn taken(&mut self, heir: u64, gateway: u64, position: u64) {
        let left = self.all.get_mut(&gateway).and_then(|m| m.from.take());
        if gateway != self.own {
            self.all.remove(&gateway);
        }
        self.lost.insert(gateway, position);
        if let Some(left) = left
            && let Some(heir) = self.all.get_mut(&heir)
        {
            heir.from = Some(heir.from.map_or(left, |from| from.min(left)));
            heir.last = heir.last.max(position);
        }
    }

    /// Returns a gateway to be taken over, and the position at which its open entries begin.
    pub(crate) fn silent(&self) -> Option<(u64, u64)> {
        let mut others = self.others();
        others.find_map(|(gateway, member)| {
            let from = member.from.filter(|_| member.silent >= SILENT)?;
            Some((gateway, from))
        })
    }

    fn others(&self) -> impl Iterator<Item = (u64, &Member)> {
        let all = self.all.iter();
        all.filter_map(|(gateway, member)| (*gateway != self.own).then_some((*gateway, member)))
    }

    /// Returns the number of other gateways that have not applied all of their entries.
    pub(crate) fn behind(&self) -> usize {
        let open = |(_, member): &(u64, &Member)| member.from.is_some();
        self.others().filter(open).count()
    }

    /// Returns the gateway that copies: the first of those that are alive.
    pub(crate) fn copying(&self) -> Copying {
        let Some(began) = self.began else {
            return match self.copied {
                Some(_) => Copying::Done,
                None => Copying::Elsewhere,
            };
        };
        let is_earlier = |(_, member): (u64, &Member)| member.since < began;
        match self.copied {
            Some(_) => Copying::Done,
            None if self.others().any(is_earlier) => Copying::Elsewhere,
            None => Copying::Here,
        }
    }

    /// Returns the position before which all entries are applied, if this gateway's are before
    /// `own`.
    pub(crate) fn applied(&self, own: u64) -> u64 {
        let open = self.others().filter_map(|(_, member)| member.from);
        open.fold(own, u64::min)
    }

    /// Returns the position before which no gateway needs the entries. The last sign that says that
    /// the replica has all rows stays, because gateways that start later read it.
    pub(crate) fn spent(&self, own: u64) -> u64 {
        self.applied(own).min(self.copied.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u64 = 1;
    const OTHER: u64 = 2;
    const THIRD: u64 = 3;

    /// A log that grows, as one of its gateways reads it.
    struct Log {
        members: Members,
        next: u64,
    }

    impl Log {
        fn new() -> Self {
            Self {
                members: Members::new(OWN, false),
                next: 0,
            }
        }

        fn origin(&mut self, gateway: u64) -> (Origin, u64) {
            self.next += 1;
            let sequence = self.next;
            (Origin { gateway, sequence }, self.next)
        }

        fn rows(&mut self, gateway: u64) -> u64 {
            let (origin, position) = self.origin(gateway);
            self.members.rows(origin, position);
            position
        }

        fn sign(&mut self, gateway: u64, applied: u64) -> u64 {
            let (origin, position) = self.origin(gateway);
            self.members.sign(origin, position, sign(applied));
            position
        }
    }

    fn sign(applied: u64) -> Sign {
        Sign {
            applied,
            copied: false,
            leaves: false,
        }
    }

    #[test]
    fn who_says_nothing_is_taken_over_with_what_it_has_left() {
        let mut log = Log::new();
        log.sign(OWN, 0);
        log.sign(OTHER, 0);
        let left = log.rows(OTHER);
        for _ in 0..SILENT - 1 {
            log.sign(OWN, 99);
        }
        assert_eq!(log.members.silent(), None);
        assert_eq!(log.members.applied(99), left);
        log.sign(OWN, 99);
        assert_eq!(log.members.silent(), Some((OTHER, left)));
        log.members.taken(OWN, OTHER, 50);
        let of_other = Origin {
            gateway: OTHER,
            sequence: 1,
        };
        assert!(log.members.is_left(of_other, left) && !log.members.is_left(of_other, 50));
        assert_eq!(log.members.silent(), None);
        assert_eq!(log.members.applied(99), 99, "what is its own, it knows");
    }

    #[test]
    fn who_says_something_is_there_and_holds_back_what_is_its_own() {
        let mut log = Log::new();
        let first = log.rows(OTHER);
        for _ in 0..3 * SILENT {
            log.sign(OWN, 0);
            log.sign(OTHER, 0);
        }
        assert_eq!(log.members.silent(), None);
        assert_eq!((log.members.applied(500), log.members.behind()), (first, 1));
        let second = log.rows(OTHER);
        log.sign(OTHER, second);
        assert_eq!(log.members.applied(500), second);
        log.sign(OTHER, second + 1);
        assert_eq!((log.members.applied(500), log.members.behind()), (500, 0));
        // One with nothing open is forgotten without a word.
        for _ in 0..SILENT {
            log.sign(OWN, 0);
        }
        assert!(log.members.silent().is_none() && log.members.others().next().is_none());
    }

    #[test]
    fn an_heir_says_that_it_has_applied_what_it_took_over() {
        let mut log = Log::new();
        let left = log.rows(OTHER);
        log.sign(THIRD, 40);
        let (by, position) = log.origin(THIRD);
        assert!(!log.members.lost(by, OTHER, position));
        assert_eq!(log.members.applied(500), left, "it is the heir's to apply");
        log.sign(THIRD, left);
        assert_eq!(log.members.applied(500), left);
        log.sign(THIRD, position + 1);
        assert_eq!(log.members.applied(500), 500);
        // A sign that the heir sent before, and that comes late, gives nothing up.
        let old = log.rows(OTHER);
        let (late, _) = log.origin(THIRD);
        let (by, position) = log.origin(THIRD);
        log.members.lost(by, OTHER, position);
        log.members.sign(late, position + 1, sign(position + 1));
        assert_eq!(log.members.applied(500), old);
    }

    #[test]
    fn who_counts_as_lost_is_told() {
        let mut log = Log::new();
        let own = log.rows(OWN);
        let (by, position) = log.origin(OTHER);
        assert!(log.members.lost(by, OWN, position));
        assert_eq!(log.members.applied(500), own, "another applies it now");
        let of_own = Origin {
            gateway: OWN,
            sequence: 1,
        };
        assert!(!log.members.is_left(of_own, own));
    }

    #[test]
    fn the_first_that_is_there_copies() {
        let mut log = Log::new();
        log.sign(OTHER, 0);
        assert_eq!(log.members.copying(), Copying::Elsewhere);
        log.sign(OWN, 0);
        log.sign(THIRD, 0);
        assert_eq!(log.members.copying(), Copying::Elsewhere);
        for _ in 0..SILENT {
            log.sign(OWN, 0);
        }
        assert_eq!(log.members.copying(), Copying::Here);
        let (origin, position) = log.origin(THIRD);
        let copied = Sign {
            applied: 500,
            copied: true,
            leaves: true,
        };
        log.members.sign(origin, position, copied);
        assert_eq!(log.members.copying(), Copying::Done);
        assert_eq!(log.members.spent(500), position, "a later gateway needs it");
        assert!(log.members.others().next().is_none(), "it has left");
    }

    #[test]
    fn who_leaves_something_is_taken_over_soon() {
        let mut log = Log::new();
        let left = log.rows(OTHER);
        let (origin, position) = log.origin(OTHER);
        let leaves = Sign {
            leaves: true,
            ..sign(left)
        };
        log.members.sign(origin, position, leaves);
        assert_eq!(log.members.silent(), None);
        log.sign(OWN, 0);
        assert_eq!(log.members.silent(), Some((OTHER, left)));
    }

    #[test]
    fn in_files_all_others_have_ended() {
        let members = Members::new(OWN, true);
        let origin = |gateway| Origin {
            gateway,
            sequence: 0,
        };
        assert!(members.is_left(origin(OTHER), 0) && !members.is_left(origin(OWN), 0));
        assert_eq!((members.applied(7), members.spent(7)), (7, 7));
    }
}

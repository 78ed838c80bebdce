//! What a backend writes: one line.

/// Makes one `#[test]` per case of the suite for a [`Harness`](crate::Harness).
///
/// ```ignore
/// // tests/conformance.rs
/// mod harness;
///
/// onceonly_conformance::suite!(harness::MyHarness);
/// ```
#[macro_export]
macro_rules! suite {
    ($harness:ty) => {
        $crate::for_each_case!($crate::each_case, $harness);
    };
}

/// Makes a `#[test]` that the cases which a backend skips are those of an approved file in its
/// `tests` folder, one line `case: capability` each, in the order of the rules.
///
/// A skip that slips in unseen is a rule that nobody checks. With ONCEONLY_BLESS=1 the test writes
/// the file instead: look at the diff before you commit it.
///
/// ```ignore
/// onceonly_conformance::approved_skips!(harness::MyHarness, "skips.txt");
/// ```
#[macro_export]
macro_rules! approved_skips {
    ($harness:ty, $file:literal) => {
        #[test]
        fn skips_are_the_approved_ones() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/", $file);
            $crate::approve(file, &$crate::skips::<$harness>());
        }
    };
}

/// Makes one `#[test]` per case for stores that are also [`ClaimRecords`](onceonly::ClaimRecords).
///
/// ```ignore
/// onceonly_conformance::suite_records!(harness::MyHarness);
/// ```
#[macro_export]
macro_rules! suite_records {
    ($harness:ty) => {
        $crate::for_each_records_case!($crate::each_records_case, $harness);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! each_records_case {
    ($harness:ty; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::run_records::<$harness>(stringify!($case));
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ($harness:ty; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::run::<$harness>(stringify!($case));
            }
        )*
    };
}

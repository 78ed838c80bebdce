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

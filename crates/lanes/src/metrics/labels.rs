//! The labels of a time series.

use std::fmt::Write as _;

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use windrow_core::Name;

/// The labels of one time series: the lane, and for some metrics a second label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Labels {
    pub(super) lane: Name,
    pub(super) more: Option<(&'static str, &'static str)>,
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut pairs = vec![("lane", &*self.lane)];
        pairs.extend(self.more);
        for (name, value) in pairs {
            let mut label = encoder.encode_label();
            let mut key = label.encode_label_key()?;
            key.write_str(name)?;
            let mut text = key.encode_label_value()?;
            text.write_str(value)?;
            text.finish()?;
        }
        Ok(())
    }
}

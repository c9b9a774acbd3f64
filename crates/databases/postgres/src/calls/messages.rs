//! Messages of SQL calls: raw values as they came, or one array for each parameter; and the answers
//! to their clients.

use std::sync::Arc;

use bytes::BufMut;
use postgres_protocol::message::frontend;
use windrow_calls::{CallDone, Extra, Formats, Generated, Signature, SqlCall};

use super::bound_call::BoundCall;
use super::renew::types_of;
use crate::compiled::Compiled;
use crate::executor::answers::{Answers, Framed};
use crate::executor::bind::Bind;
use crate::executor::form::{Buffers, KnownTypes, Messages};
use crate::moment::push_distances;
use crate::statement::set::Fused;
use crate::values::encode::Unfit;

impl Messages for BoundCall {
    type Work = SqlCall;

    fn send_one(
        compiled: &Compiled<Self>,
        call: &SqlCall,
        statement: Option<u64>,
        Buffers { out, .. }: Buffers<'_>,
    ) -> Result<(), Unfit> {
        if statement.is_none() {
            let types = types_of(call);
            frontend::parse("", &compiled.single, types.iter().copied(), out).map_err(|_| Unfit)?;
        }
        let mut bind = Bind::open(out, statement);
        bind.formats(&call.formats)?;
        bind.count(call.statement.parameters().len())?;
        bind.out.put_slice(call.arguments.as_bytes());
        bind.formats(&call.results)?;
        bind.close()
    }

    fn send_origin(call: &SqlCall, Buffers { out, .. }: Buffers<'_>) -> Result<bool, Unfit> {
        let Some(origin) = &call.origin else {
            return Ok(false);
        };
        let own = origin.own.unwrap_or_default();
        let types = types_of(call);
        let types = types.iter().take(own).copied();
        frontend::parse("", origin.as_str(), types, out).map_err(|_| Unfit)?;
        let mut bind = Bind::open(out, None);
        let formats = (0..own).map(|place| call.formats.is_binary(place));
        bind.formats(&Formats::of(formats))?;
        bind.count(own)?;
        for value in call.arguments.iter().take(own) {
            match value {
                Some(value) => bind.parameter(|out| {
                    out.put_slice(value);
                    Ok(())
                })?,
                None => bind.out.put_i32(-1),
            }
        }
        bind.formats(&call.results)?;
        bind.close()?;
        Ok(true)
    }

    fn send_set<'w>(
        compiled: &Compiled<Self>,
        set: &Fused,
        statement: u64,
        calls: impl ExactSizeIterator<Item = Option<&'w SqlCall>> + Clone,
        distances: &[i64],
        Buffers { out, .. }: Buffers<'_>,
    ) -> Result<u8, Unfit> {
        let bound = &compiled.form;
        let (width, count) = (bound.carriers.len(), calls.len());
        // Call by call, parameter by parameter: each call's bytes are walked once.
        let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(count * width);
        for call in calls {
            values.extend(call.ok_or(Unfit)?.arguments.iter());
        }
        if values.len() != count * width {
            return Err(Unfit);
        }
        let mut bind = Bind::open(out, Some(statement));
        bind.all_binary();
        bind.count(width + usize::from(set.moments))?;
        for (place, carrier) in bound.carriers.iter().enumerate() {
            let column = values.iter().skip(place).step_by(width).copied();
            bind.parameter(|out| carrier.push_array(column, out))?;
        }
        if set.moments {
            bind.parameter(|out| push_distances(distances, out))?;
        }
        // The call's place, if it took place, and the value that it took from a sequence.
        let heads = match set.counted {
            true => 0,
            false => 2 + u8::from(compiled.generates.is_some()),
        };
        let own = (0..bound.width).map(|place| bound.results.is_binary(usize::from(place)));
        bind.results(heads, own)?;
        bind.close()?;
        Ok(heads)
    }

    fn known_types(call: &SqlCall) -> KnownTypes<'_> {
        match call.fresh {
            true => KnownTypes::AtUse,
            false => KnownTypes::Reported(call.statement.signature()),
        }
    }

    fn typed(call: &SqlCall, types: &Signature, done: &mut CallDone) {
        let news = news(call, types);
        if call.fresh && (news.is_some() || done.extra.is_some()) {
            done.extra.get_or_insert_default().signature = news;
        }
    }

    fn done_one(compiled: &Compiled<Self>, answers: &Answers, at: usize) -> CallDone {
        let messages = answers.messages(at);
        let signature = compiled.form.changed_signature.clone();
        let extra = (!messages.is_empty() || signature.is_some()).then(|| {
            Box::new(Extra {
                messages,
                generated: None,
                signature,
            })
        });
        CallDone {
            rows: answers.count(at),
            extra,
        }
    }

    fn begin_of_set(compiled: &Compiled<Self>, is_counted: bool) -> CallDone {
        let mut done = CallDone::rows(u64::from(is_counted));
        if let Some(signature) = &compiled.form.changed_signature {
            done.extra.get_or_insert_default().signature = Some(signature.clone());
        }
        done
    }

    fn take_row(
        compiled: &Compiled<Self>,
        answers: &Answers,
        framed: &Framed,
        done: &mut CallDone,
    ) {
        done.rows += u64::from(framed.done);
        let row = answers.row_of(framed);
        let generated = framed.taken.zip(compiled.generates);
        if row.is_empty() && generated.is_none() {
            return;
        }
        let extra = done.extra.get_or_insert_default();
        extra.messages = match extra.messages.is_empty() {
            true => row,
            // A key that is not unique any more.
            false => [&*extra.messages, &*row].concat().into(),
        };
        extra.generated = generated.map(|(value, sequence)| Generated { sequence, value });
    }

    fn generated(done: &mut CallDone, generated: Generated) {
        done.extra.get_or_insert_default().generated = Some(generated);
    }
}

/// Returns the types that a statement had when it was executed, if they differ from those of its
/// description. A client's own text contains its literals, so it has fewer parameters.
fn news(call: &SqlCall, types: &Signature) -> Option<Arc<Signature>> {
    let told = call.statement.signature();
    let literals = told.parameters.iter().skip(types.parameters.len());
    let parameters = types.parameters.iter().chain(literals).copied().collect();
    let fields = types.fields.clone();
    let now = Signature { parameters, fields };
    (now != **told).then(|| Arc::new(now))
}

//! What a crash may leave after each call of a run: [`Recorder`].

use std::cell::RefCell;
use std::rc::Rc;

use untorn_fs::{
    After, Before, Completed, CrashImage, FaultPlan, ImageKey, Look, ModelFs, Op, OpKind,
    Persistence,
};

/// A moment at which the power may be cut.
#[derive(Debug)]
pub(crate) struct Moment {
    /// The call after which it is; none for the beginning and the end.
    pub(crate) after: Option<String>,
    /// What may be left, for each of the models that were asked for.
    pub(crate) images: Vec<Picture>,
}

/// What may be left under one model.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) persistence: Persistence,
    pub(crate) key: ImageKey,
    pub(crate) image: CrashImage,
}

impl Moment {
    pub(crate) fn now(model: &ModelFs, models: &[Persistence], after: Option<String>) -> Self {
        let images = models.iter().map(|&persistence| Picture {
            persistence,
            key: model.image_key(persistence),
            image: model.crash_image(persistence),
        });
        Self {
            after,
            images: images.collect(),
        }
    }
}

/// Acts as another plan does, and takes a picture after each call.
pub(crate) struct Recorder {
    plan: Rc<dyn FaultPlan>,
    model: ModelFs,
    models: Vec<Persistence>,
    /// Whether pictures are taken yet: after a fault only what comes behind it is new.
    records: Box<dyn Fn() -> bool>,
    moments: RefCell<Vec<Moment>>,
}

impl Recorder {
    pub(crate) fn new(
        plan: Rc<dyn FaultPlan>,
        model: &ModelFs,
        models: &[Persistence],
        records: impl Fn() -> bool + 'static,
    ) -> Self {
        Self {
            plan,
            model: model.clone(),
            models: models.to_vec(),
            records: Box::new(records),
            moments: RefCell::default(),
        }
    }

    pub(crate) fn take_moments(&self) -> Vec<Moment> {
        self.moments.take()
    }
}

impl FaultPlan for Recorder {
    fn before(&self, call: &Op) -> Before {
        let fault = self.plan.before(call);
        if let Before::Fail(_) = fault {
            fail_write_back(&self.model, call);
        }
        fault
    }

    fn after(&self, call: &Completed) -> After {
        let fault = self.plan.after(call);
        if (self.records)() {
            let after = Some(call.to_string());
            let moment = Moment::now(&self.model, &self.models, after);
            self.moments.borrow_mut().push(moment);
        }
        fault
    }

    fn look(&self, call: &Look) -> Option<i32> {
        self.plan.look(call)
    }
}

/// A sync that fails has tried: what it could not write is given up, as Linux does.
pub(crate) fn fail_write_back(model: &ModelFs, call: &Op) {
    match call.kind {
        OpKind::Fsync | OpKind::Fdatasync => {
            // The file may be gone or have moved; then nobody will look for what it held.
            model.lose_dirty_data(call.path.as_ref()).unwrap_or(());
        }
        OpKind::Syncfs => model.lose_all_dirty_data(),
        OpKind::Openat
        | OpKind::Mkdirat
        | OpKind::Write
        | OpKind::Pwrite
        | OpKind::Ftruncate
        | OpKind::Fchmod
        | OpKind::Fchown
        | OpKind::Fsetxattr
        | OpKind::Symlinkat
        | OpKind::Linkat
        | OpKind::Renameat2
        | OpKind::Unlinkat
        | OpKind::SyncFileRange => {}
    }
}

//! Every state that a crash may leave: [`explore`].

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use untorn_explore::{Coverage, Decision, Explorer, Limits, Mode, Path, Task};
use untorn_fs::{Chooser, CrashImage, ModelFs};

/// How far an exploration came.
#[derive(Debug, Clone)]
pub struct Exploration {
    /// Recoveries that were looked at. Each stands for all states that agree with what was looked
    /// at.
    pub runs: u64,
    /// States covered, of all states; exact.
    pub coverage: Coverage,
    /// What may be claimed.
    pub mode: Mode,
}

impl Exploration {
    /// Whether every state was covered.
    pub fn is_exhaustive(&self) -> bool {
        self.mode == Mode::Exhausted
    }
}

/// Makes the choices of one run as its task says, and notes those that the task left open.
struct TaskChooser {
    task: RefCell<Option<Task>>,
    made: RefCell<Vec<Decision>>,
}

impl Chooser for TaskChooser {
    fn choose(&self, id: u64, arity: u32) -> u32 {
        let task = self.task.borrow();
        let task = task.as_ref().expect("the run is not over");
        if let Some(pick) = task.path().get(id) {
            return pick;
        }
        let pick = task.default_pick().pick(id, arity);
        self.made.borrow_mut().push(Decision { id, arity, pick });
        pick
    }
}

/// Goes through all states that a crash may leave, and gives `look` a file system for each set of
/// them that look the same to it. The path names that set and can be replayed; `look` may end the
/// exploration early.
///
/// # Panics
/// If `look` keeps the file system, or a descriptor of it, and looks again when it has returned:
/// the states were counted by what it had looked at until then.
pub fn explore(
    image: &CrashImage,
    limits: Limits,
    mut look: impl FnMut(&ModelFs, &dyn Fn() -> Path) -> ControlFlow<()>,
) -> Exploration {
    let choices = image.choices().iter();
    let choices = choices.map(|choice| (choice.id, choice.arity));
    let mut explorer = Explorer::new(choices, limits).expect("every choice has two picks or more");
    while let Some(task) = explorer.next() {
        let chooser = Rc::new(TaskChooser {
            task: RefCell::new(Some(task)),
            made: RefCell::default(),
        });
        let fs = image.recover(Rc::clone(&chooser) as Rc<dyn Chooser>);
        let path = || {
            let task = chooser.task.borrow();
            let fixed = task.as_ref().map(Task::path).cloned().unwrap_or_default();
            fixed.extended(&chooser.made.borrow())
        };
        let flow = look(&fs, &path);
        let task = chooser.task.take().expect("only this takes the task");
        explorer
            .complete(task, &chooser.made.borrow())
            .expect("a crash image asks for its own choices only");
        if flow.is_break() {
            explorer.stop();
        }
    }
    Exploration {
        runs: explorer.runs_completed(),
        coverage: explorer.coverage(),
        mode: explorer.mode(),
    }
}

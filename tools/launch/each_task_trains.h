/// each_task_trains refuses to train if the batch system has started this command once per task.
#pragma once

namespace stagecraft::tools {

/// Checks a command that trains: its process must be alone in its step, or `stagecraft launch` must
/// have started it. Errors: UsageArgument.
void refuse_to_train_in_each_task();

}  // namespace stagecraft::tools

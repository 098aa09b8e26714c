/// Guards against processes of a batch system's step that each train for themselves.
#pragma once

namespace stagecraft::tools {

/// For a command that trains: refuses if it was started for each task of a step, and not by
/// `stagecraft launch`. Errors: UsageArgument.
void refuse_to_train_in_each_process();

}  // namespace stagecraft::tools

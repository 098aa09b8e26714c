/// named_schedule tells names of schedules from files, for options that take either.
#pragma once

#include <string>

#include "stagecraft/scheduler/builders/registry.h"

namespace stagecraft::tools {

/// Returns the builder of this name, or null.
[[nodiscard]] const BuilderInfo* builder_named(const std::string& name);

/// Checks that `word`, which names no builder, is a file or "-".
/// Errors: UsageArgument for a word that looks like a mistyped name, UsageFile for another one;
/// both with `option`, all names, and the command whose help describes them.
void require_schedule_file(const std::string& command,
                           const std::string& option,
                           const std::string& word);

}  // namespace stagecraft::tools

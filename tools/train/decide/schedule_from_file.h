/// schedule_from_file makes the schedule of a run from a file of the user, in any format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/decide/step_size.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns the schedule of --schedule, which is not the name of a builder.
/// Errors: UsageArgument for a word that looks like a misspelled name; UsageFile for a file that
///         cannot be opened; ScheduleParse for a file that is no schedule.
[[nodiscard]] Schedule read_schedule_file(const PipelineOptions& options, Console& console);

/// Makes the choice.
/// Errors: those of read_schedule_file(); UsageArgument for options that contradict the file, and
/// for a file that contradicts the model.
[[nodiscard]] Choice choose_from_file(const TrainOptions& options,
                                      const StepSize& size,
                                      Console& console);

/// Checks a number that a file fixes. Errors: UsageArgument.
void check_fixed(const char* option,
                 const std::optional<std::int64_t>& given,
                 int fixed,
                 const std::string& file);

/// Checks the data and --microbatches against the schedule of a file, which `option` named.
/// Errors: UsageArgument.
void check_microbatches(const char* option,
                        const std::string& file,
                        const StepSize& size,
                        const Schedule& schedule,
                        const Layout& layout);

/// Returns whether the schedule has no graph of its own: then it is a chain, once per replica.
[[nodiscard]] bool is_chain(const Schedule& schedule, const Layout& layout);

}  // namespace stagecraft::tools

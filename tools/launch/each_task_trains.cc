#include "stagecraft/tools/launch/each_task_trains.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/ways.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {

void refuse_to_train_in_each_task() {
  const auto step = batch_step();
  // `stagecraft launch` sets it for the program that it runs.
  const char* coming = std::getenv("STAGECRAFT_WORKERS_COMING");
  const bool is_launched = coming != nullptr && *coming != '\0';
  if (step && step->processes > 1 && !is_launched) {
    throw Error(Errc::UsageArgument,
                fmt::format("{0} has started {1} processes of this command, and each would train "
                            "for itself: {0} stagecraft launch -- train ... makes one run of them, "
                            "{2} starts one",
                            step->system->starter,
                            step->processes,
                            step->system->starts_one));
  }
}

}  // namespace stagecraft::tools

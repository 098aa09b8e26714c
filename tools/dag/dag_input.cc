#include "stagecraft/tools/dag/dag_input.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/strategy/strategy_file.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/schedule/input/strategy_input.h"

namespace stagecraft::tools {
namespace {

void refuse_for_schedules(const char* option, int given, const char* own) {
  if (given > 0) {
    wrong_usage(kShowDagCommand,
                fmt::format("{} is an option of strategies, found a schedule, which has its own "
                            "{}; leave it out",
                            option,
                            own));
  }
}

/// Adds the split of --microbatches unless the strategy has one.
void settle_split(Strategy& strategy, const DagShowOptions& options) {
  const auto& directives = strategy.directives();
  const auto found = std::ranges::find_if(directives, [](const Directive& directive) {
    return std::holds_alternative<SplitDirective>(directive);
  });
  if (options.microbatches == 0) {
    return;
  }
  if (found == directives.end()) {
    strategy.split({}, options.microbatches);
    return;
  }
  if (const int parts = std::get<SplitDirective>(*found).parts; parts != options.microbatches) {
    wrong_usage(kShowDagCommand,
                fmt::format("--microbatches expects {}, as the split of {} fixes it, found {}; "
                            "leave it out or change the file",
                            parts,
                            source_name(options.file),
                            options.microbatches));
  }
}

}  // namespace

DagInput read_dag_input(const DagShowOptions& options, Console& console) {
  std::string text = read_source(options.file, "FILE", console);
  if (options.read.from.empty() && looks_like_strategy_file(text)) {
    Strategy strategy = strategy_in(text, options.file);
    settle_split(strategy, options);
    return strategy;
  }
  refuse_for_schedules("--stages", options.stages, "stages");
  refuse_for_schedules("--microbatches", options.microbatches, "microbatches");
  return schedule_in(std::move(text), options.file, options.read, console);
}

Strategy strategy_of_file(const ScheduleFile& file) {
  if (const auto wrong = validate(file.schedule, file.graph); !wrong.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("{} breaks {}; stagecraft schedule check lists all violations",
                            file.name,
                            to_string(wrong.front())));
  }
  return strategy_of(file.schedule, Layout::of(file.schedule));
}

}  // namespace stagecraft::tools

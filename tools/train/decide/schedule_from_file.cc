#include "stagecraft/tools/train/decide/schedule_from_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/input/named_schedule.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

/// Errors: UsageArgument for edges or frozen stages that the model does not have.
void check_model(const TrainOptions& options, const Schedule& schedule, const Layout& layout) {
  if (options.model.file) {
    return;  // its program says both
  }
  const ModelEntry& model = find_model(options.model.name);
  if (!model.may_branch && !is_chain(schedule, layout)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the stages of {} are one chain, but the schedule file '{}' names other "
                    "edges; remove its @edges",
                    model.name,
                    options.pipeline.schedule));
  }
  if (!schedule.stage_graph().frozen().empty()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("all of {} trains, but the schedule file '{}' names frozen stages; remove its "
                    "@frozen",
                    model.name,
                    options.pipeline.schedule));
  }
}

void check_options(const TrainOptions& options,
                   const StepSize& size,
                   const Schedule& schedule,
                   const Layout& layout) {
  const std::string& file = options.pipeline.schedule;
  if (options.pipeline.chunks || !options.pipeline.set.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--chunks and --set are for schedules by name, found the file '{}'; "
                            "leave them out",
                            file));
  }
  check_fixed("--stages", size.stages, layout.model_stages(), file);
  check_fixed("--ranks", options.pipeline.ranks, layout.ranks(), file);
  check_microbatches("--schedule", file, size, schedule, layout);
}

}  // namespace

void check_fixed(const char* option,
                 const std::optional<std::int64_t>& given,
                 int fixed,
                 const std::string& file) {
  if (given && *given != fixed) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} expects {}, as '{}' fixes it, found {}; leave {} out or change "
                            "the file",
                            option,
                            fixed,
                            file,
                            *given,
                            option));
  }
}

void check_microbatches(const char* option,
                        const std::string& file,
                        const StepSize& size,
                        const Schedule& schedule,
                        const Layout& layout) {
  const int of_step = layout.units() * schedule.microbatches();
  if (size.data && size.data->microbatches != of_step) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} expects a file for {}, as '{}' has them in a step, "
                            "found {} in '{}'",
                            option,
                            count_text(size.data->microbatches, "microbatch"),
                            size.data->folder,
                            of_step,
                            file));
  }
  check_fixed("--microbatches", size.microbatches, schedule.microbatches(), file);
}

bool is_chain(const Schedule& schedule, const Layout& layout) {
  return schedule.stage_graph().edges() ==
         layout.expand(StageGraph::chain(layout.model_stages())).edges();
}

Schedule read_schedule_file(const PipelineOptions& options, Console& console) {
  const std::string& path = options.schedule;
  require_schedule_file(kTrainCommand, "--schedule", path);
  return read_schedule(path, {}, console).schedule;
}

Choice choose_from_file(const TrainOptions& options, const StepSize& size, Console& console) {
  Schedule schedule = read_schedule_file(options.pipeline, console);
  if (schedule.stages() < 1 || schedule.microbatches() < 1) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format(
            "the schedule file '{}' expects rows of cells such as 0F0, found none; see README.md",
            options.pipeline.schedule));
  }
  if (options.pipeline.copies() > 1) {
    schedule = in_copies(schedule, static_cast<int>(options.pipeline.copies()));
  }
  Layout layout = Layout::of(schedule);
  check_model(options, schedule, layout);
  check_options(options, size, schedule, layout);
  return {.shape = {.stages = layout.model_stages(),
                    .microbatches = layout.units() * schedule.microbatches(),
                    .microbatch_size = size.microbatch_size,
                    .cut = size.cut},
          .schedule = std::move(schedule),
          .layout = std::move(layout),
          .strategy = std::nullopt};
}

}  // namespace stagecraft::tools

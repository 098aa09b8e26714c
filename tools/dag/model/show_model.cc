#include "stagecraft/tools/dag/model/show_model.h"

#include <memory>
#include <numeric>
#include <optional>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/dag/dag.h"
#include "stagecraft/tools/dag/dag_input.h"
#include "stagecraft/tools/dag/dag_output.h"
#include "stagecraft/tools/dag/model/model_dag.h"
#include "stagecraft/tools/dag/show.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/train/catalog/model_options.h"
#include "stagecraft/tools/train/catalog/open_work.h"

namespace stagecraft::tools {
namespace {

constexpr int kSamples = 4;  // of a microbatch, as `train` has them; they change no operator

struct ModelShowOptions {
  DagShowOptions show;
  ModelChoice model;
  DataPlaces data;
  std::optional<std::string> cut;
};

/// Refuses options that do nothing without a model.
void refuse_without_model(const CLI::App& app, const ModelShowOptions& o) {
  const auto refuse = [](const std::string& option) {
    wrong_usage(kShowDagCommand,
                fmt::format("{} expects --model or --model-file, found neither", option));
  };
  for (const char* option : {"--cut", "--data", "--text", "--images"}) {
    if (app.count(option) > 0) {
      refuse(option);
    }
  }
  for (const auto& [size, value] : o.model.sizes.values()) {
    refuse(fmt::format("--{}", size));
  }
}

void refuse_graph(const ModelShowOptions& o) {
  if (!o.show.read.graph.empty()) {
    wrong_usage(kShowDagCommand,
                "--graph is for stages without a model, and a model has its own edges; leave it "
                "out");
  }
}

/// Returns the microbatches of a step (LA-3).
int microbatches_of(const Strategy& strategy) {
  int parts = 1;
  int units = 1;
  for (const Directive& directive : strategy.directives()) {
    if (const auto* const split = std::get_if<SplitDirective>(&directive)) {
      parts = split->parts;
    } else if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      units = std::lcm(units, static_cast<int>(place->ranks.size()));
    }
  }
  return parts * units;
}

int stages_of_strategy(const Strategy& strategy,
                       const ModelShowOptions& o,
                       const std::optional<Cut>& cut) {
  const std::optional<int> cut_stages = cut ? stages_of(*cut) : std::nullopt;
  const int stages = o.show.stages > 0 ? o.show.stages : placed_stages(strategy);
  if (stages == 0 && !cut_stages) {
    wrong_usage(kShowDagCommand,
                "a strategy that places no stage by its number expects --stages N or --cut "
                "PLACES, found neither");
  }
  return stages > 0 ? stages : *cut_stages;
}

WorkShape shape_for(const DagInput& input, const ModelShowOptions& o) {
  const std::optional<Cut> cut = cut_option(o.cut);
  WorkShape shape{.microbatch_size = kSamples, .cut = cut};
  if (const auto* const strategy = std::get_if<Strategy>(&input)) {
    shape.stages = stages_of_strategy(*strategy, o, cut);
    shape.microbatches = microbatches_of(*strategy);
  } else {
    const Schedule& schedule = std::get<ScheduleFile>(input).schedule;
    const Layout layout = Layout::of(schedule);
    shape.stages = layout.model_stages();
    shape.microbatches = layout.units() * schedule.microbatches();
  }
  if (const auto made = cut ? stages_of(*cut) : std::nullopt; made && *made != shape.stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--cut expects places that make {}, as {} has them, found {}; "
                            "change the cut or the file",
                            count_text(shape.stages, "stage"),
                            source_name(o.show.file),
                            *made));
  }
  return shape;
}

void check_data(const Work& work, const WorkShape& shape, const std::string& file) {
  const std::optional<FixedData> data = work.fixed_data();
  if (data && data->microbatches != shape.microbatches) {
    throw Error(Errc::UsageArgument,
                fmt::format("FILE expects {} in a step, as '{}' has them, found {} in "
                            "{}; change the file or give other data",
                            count_text(data->microbatches, "microbatch"),
                            data->folder,
                            shape.microbatches,
                            source_name(file)));
  }
}

Program compiled(const ModelShowOptions& o, WorkShape shape) {
  const std::unique_ptr<Work> work = open_work({.model = o.model, .data = o.data}, memory_left());
  if (const auto samples = work->sample_data()) {
    shape.microbatch_size = samples->microbatch_size().value_or(shape.microbatch_size);
  }
  check_data(*work, shape, o.show.file);
  (void)work->bytes(shape);  // tells if the model has no such cut, before it is built
  Program program = compile_in(Precision::Float32, *work, shape);
  if (const int stages = program.stage_graph().size(); stages != shape.stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} is for {}, but the model has {}; change the file, or give "
                            "--cut with other places",
                            source_name(o.show.file),
                            count_text(shape.stages, "stage"),
                            stages));
  }
  return program;
}

void show_with_model(const ModelShowOptions& o, Console& console) {
  const DagInput input = read_dag_input(o.show, console);
  const SingleThreaded alone;  // tracing must not start a pool of helper threads
  const Program program = compiled(o, shape_for(input, o));
  const auto* const strategy = std::get_if<Strategy>(&input);
  write_dag(issue(strategy != nullptr ? model_dag(program, *strategy)
                                      : model_dag(program, std::get<ScheduleFile>(input).schedule)),
            o.show,
            console);
}

}  // namespace

ExitCode show_dag_of_model(const std::vector<std::string>& words, Console& console) {
  ModelShowOptions options;
  CLI::App app(
      "Shows the training DAG of a strategy or a schedule. With a model, its nodes know their "
      "operators.",
      kShowDagCommand);
  app.option_defaults()->always_capture_default(false);
  add_dag_show_options(app, options.show);
  app.add_option("--cut",
                 options.cut,
                 "places where stages begin, e.g. layers.4,layers.8 [the model's markers; a "
                 "model from a file is balanced by time]")
      ->type_name("PLACES|@FILE");
  add_model_options(app, options.model, options.data);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  complete_dag_show_options(app, options.show, console);
  if (!options.model.file && app.count("--model") == 0) {
    refuse_without_model(app, options);
    show_bare_dag(options.show, console);
    return ExitCode::Good;
  }
  settle_model(kShowDagCommand, app, options.model, options.data);
  refuse_graph(options);
  show_with_model(options, console);
  return ExitCode::Good;
}

ExitCode dag_of_models(const std::vector<std::string>& arguments, Console& console) {
  return dag_with(&show_dag_of_model, arguments, console);
}

}  // namespace stagecraft::tools

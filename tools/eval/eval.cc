#include "stagecraft/tools/eval/eval.h"

#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/eval/options.h"
#include "stagecraft/tools/train/catalog/open_work.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {
namespace {

struct Evaluated {
  std::string model;
  Evaluation found;
  std::int64_t microbatches = 0;
  double seconds = 0.0;  ///< with the capture of the model in evaluation mode
};

/// Takes the seed of a named model's data from its checkpoint, so that they are those of the run.
WorkRequest work_of(const EvalRequest& request) {
  WorkRequest work = request.work;
  if (request.seed) {
    work.seed = *request.seed;
  } else if (work.checkpoint && !work.model.file) {
    work.seed = CheckpointReader(*work.checkpoint).header().seed;
  }
  return work;
}

/// A batch of a named model is that of a training, and one of shards is a single microbatch: all
/// that the samples fill are evaluated, as in a training. Errors: UsageArgument for sizes of data
/// that have their own.
WorkShape shape_of(const EvalRequest& request, const Work& work) {
  const auto refuse = [](const std::string& message) { throw Error(Errc::UsageArgument, message); };
  if (request.work.model.file && request.microbatches) {
    refuse(
        "--microbatches is for models by name, found --model-file, of whose data all microbatches "
        "are evaluated; leave it out");
  }
  if (const auto data = work.fixed_data()) {
    if (request.microbatch_size) {
      refuse(
          fmt::format("--microbatch-size is for models by name and for shards of samples, found "
                      "whole microbatches in '{}'; leave it out",
                      data->folder));
    }
    return WorkShape::uncut(data->microbatches, /*microbatch_size=*/1);
  }
  if (const auto samples = work.sample_data()) {
    const std::int64_t usual = samples->microbatch_size().value_or(kUsualMicrobatchSize);
    return WorkShape::uncut(/*microbatches=*/1, request.microbatch_size.value_or(usual));
  }
  return WorkShape::uncut(static_cast<int>(request.microbatches.value_or(kUsualMicrobatches)),
                          request.microbatch_size.value_or(kUsualMicrobatchSize));
}

Evaluated evaluated(const EvalRequest& request, Console& console) {
  const WorkRequest asked = work_of(request);
  const std::unique_ptr<Work> work = open_work(asked, memory_left());
  const WorkShape shape = shape_of(request, *work);
  StatusLine line(console, request.json);
  line.say("compiling the model ...");
  Trainer trainer(Cluster::local(1),
                  compile_in(request.precision, *work, shape),
                  "1f1b",
                  Sgd{},
                  {.seed = asked.seed, .threads_per_worker = static_cast<int>(request.threads)});
  line.say(fmt::format("evaluating {} ...", count_text(work->evaluation_batches(shape), "batch")));
  const auto begin = std::chrono::steady_clock::now();
  const auto batches = evaluation_source(*work, shape);
  Evaluation found = trainer.evaluate(*batches, work->metrics());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return {.model = asked.model.file.value_or(asked.model.name),
          .found = std::move(found),
          .microbatches = work->evaluation_batches(shape) * shape.microbatches,
          .seconds = seconds.count()};
}

std::string to_text(const Evaluated& evaluated) {
  const Evaluation& found = evaluated.found;
  std::string text = fmt::format("{}: evaluation loss {:.4f}", evaluated.model, found.loss);
  for (const auto& [name, value] : found.metrics) {
    text += fmt::format("  {} {:.4f}", name, value.item<double>());
  }
  return text + fmt::format("\n{}, {} in {:.2f} s: {:.3g} samples/s\n",
                            count_text(evaluated.microbatches, "microbatch"),
                            count_text(found.samples, "sample"),
                            evaluated.seconds,
                            static_cast<double>(found.samples) / evaluated.seconds);
}

std::string to_json(const Evaluated& evaluated) {
  const Evaluation& found = evaluated.found;
  auto metrics = nlohmann::ordered_json::object();
  for (const auto& [name, value] : found.metrics) {
    metrics[name] = value.item<double>();
  }
  return command_json(
      "eval",
      {{"model", evaluated.model},
       {"loss", found.loss},
       {"metrics", metrics},
       {"batches", found.batches},
       {"microbatches", evaluated.microbatches},
       {"samples", found.samples},
       {"seconds", evaluated.seconds},
       {"samples_per_second", static_cast<double>(found.samples) / evaluated.seconds}});
}

}  // namespace

ExitCode evaluate_model(const std::vector<std::string>& words, Console& console) {
  const auto parsed = parse_eval_options(words);
  if (const auto* help = std::get_if<EvalHelp>(&parsed)) {
    print(help->text, console);
    return ExitCode::Good;
  }
  const auto& request = std::get<EvalRequest>(parsed);
  const SingleThreaded alone;  // this thread's computation must not take threads from the rank
  const Evaluated result = evaluated(request, console);
  print(request.json ? to_json(result) : to_text(result), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools

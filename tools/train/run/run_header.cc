#include "stagecraft/tools/train/run/run_header.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/run/run_files.h"
#include "stagecraft/tools/train/verify/named_state.h"

namespace stagecraft::tools {
namespace {

/// Returns a large number in three digits: "860 k", "1.24 M".
std::string short_count(double count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  for (; count >= 999.5 && unit + 1 < std::size(kUnits); ++unit) {
    count /= 1000;
  }
  return fmt::format("{:.3g}{}", count, kUnits[unit]);
}

double parameter_count(const Program& program) {
  double count = 0.0;
  for (const auto& [name, tensor] : first_names(program, program.compiled().graph.parameters)) {
    count += static_cast<double>(tensor.numel());
  }
  return count;
}

std::string cut_text(const TrainJob& job) {
  const TrainOptions& o = job.options;
  if (job.planned) {
    return ", cut by the planner";
  }
  if (o.pipeline.cut) {
    return fmt::format(", cut by --cut {}", *o.pipeline.cut);
  }
  return job.choice.shape.stages == 1 ? ""
         : o.model.file               ? ", balanced by time"
                                      : ", cut at its markers";
}

std::string schedule_text(const TrainJob& job) {
  const PipelineOptions& o = job.options.pipeline;
  if (job.planned) {
    return job.planned->best().candidate.schedule_name;
  }
  return o.strategy ? fmt::format("strategy {}", *o.strategy) : o.schedule;
}

std::string batch_text(const TrainJob& job, std::int64_t rows) {
  const int microbatches = job.choice.shape.microbatches;
  const std::int64_t batches = job.options.run.accumulate;
  std::string text =
      fmt::format("{} x {}", count_text(microbatches, "microbatch"), rows / microbatches);
  text += fmt::format(" = {}", count_text(rows, "sample"));
  return batches == 1 ? text : fmt::format("{}, {} a step", text, count_text(batches, "batch"));
}

/// Returns how the rate changes after its warm-up.
std::string rate_change(const OptimizerOptions& o, std::int64_t steps) {
  switch (o.rate_kind) {
    case RateKind::Constant:
      return "constant";
    case RateKind::Cosine:
      return "falls to 0 as a cosine";
    case RateKind::Linear:
      return "falls to 0 linearly";
    case RateKind::Wsd: {
      const std::int64_t decay = decay_steps(o, steps);
      return fmt::format("falls to 0 in the last {}",
                         decay == 1 ? "step" : count_text(decay, "step"));
    }
    case RateKind::Plateau:
      return fmt::format("times {} on each plateau", make_plateau(o).value().factor);
    case RateKind::Epoch:
      return fmt::format("times {} after every {}",
                         o.lr_factor.value_or(Plateau().factor),
                         o.lr_epochs == 1 ? "epoch" : count_text(o.lr_epochs, "epoch"));
  }
  return "";
}

std::string rate_text(const OptimizerOptions& o, std::int64_t steps) {
  std::string text = fmt::format("learning rate {}, {}", o.rate, rate_change(o, steps));
  return o.warmup == 0 ? text
                       : fmt::format("{} after {} of warm-up", text, count_text(o.warmup, "step"));
}

/// Returns "data: 59 samples in 7 steps an epoch, 3 left over; 21 held out, 20 of them evaluated".
std::string folder_text(const TrainJob& job) {
  const TrainOptions& o = job.options;
  const WorkShape& shape = job.choice.shape;
  const char* unit = o.run.accumulate == 1 ? "step" : "batch";
  if (const auto data = job.work->fixed_data()) {
    return fmt::format("{}: {} an epoch", data->folder, count_text(data->batches, unit));
  }
  const SampleData data = job.work->sample_data().value();
  const std::int64_t rows = shape.microbatches * shape.microbatch_size;
  const std::int64_t batches = data.batches(shape);
  std::string text = fmt::format("{}: {} in {} an epoch",
                                 data.folder,
                                 count_text(data.samples, "sample"),
                                 count_text(batches, unit));
  if (const std::int64_t left = data.samples - batches * rows; left != 0) {
    text += fmt::format(", {} left over", left);
  }
  if (data.held_out == 0) {
    return text;
  }
  text += fmt::format("; {} held out", data.held_out);
  const std::int64_t left = data.held_out % shape.microbatch_size;  // fill no microbatch
  return left == 0 || !o.run.eval_every
             ? text
             : fmt::format("{}, {} of them evaluated", text, data.held_out - left);
}

std::string data_text(const TrainJob& job) {
  const TrainOptions& o = job.options;
  if (o.model.file) {
    return folder_text(job);
  }
  return find_model(o.model.name).data == "text" ? o.data.text
                                                 : o.data.images.value_or("drawn images");
}

/// Returns where the loss of any one rank takes the run.
std::string restart_source(const TrainJob& job) {
  if (job.mirrors) {
    return "mirrors";
  }
  if (every_stage_has_copies(*job.execution.plan)) {
    return "copies of the stages";
  }
  const std::string copied = any_stage_has_copies(*job.execution.plan)
                                 ? "copies of the stages that have some, else from "
                                 : "";
  return copied + (job.options.keeping.save_every ? "checkpoints"
                   : job.start.checkpoint         ? "the checkpoint that it begins from"
                                                  : "the start");
}

/// Returns "; at most 3 restarts, from mirrors, with spares node-c, node-d", or nothing.
std::string restarts_text(const TrainJob& job) {
  const WorkerOptions& o = job.options.workers;
  if (o.restarts == 0) {
    return "";
  }
  return fmt::format("; at most {}, from {}{}",
                     count_text(o.restarts, "restart"),
                     restart_source(job),
                     o.spares.empty() ? ""
                                      : fmt::format(", with {} {}",
                                                    o.spares.size() == 1 ? "spare" : "spares",
                                                    fmt::join(o.spares, ", ")));
}

std::string workers_text(const TrainJob& job) {
  const WorkerOptions& o = job.options.workers;
  const char* kind = o.kind == WorkerKind::Threads     ? "thread"
                     : o.kind == WorkerKind::Processes ? "process"
                                                       : "joining worker";
  return fmt::format(
      "{} on {}{}", count_text(job.choice.layout.ranks(), kind), o.device, restarts_text(job));
}

}  // namespace

std::string header_text(const TrainJob& job, std::int64_t rows) {
  const TrainOptions& o = job.options;
  std::string text = fmt::format(
      "model      {}, {} parameters; {}{}\n"
      "schedule   {} on {}; {}\n"
      "optimizer  {}, {}; until step {}\n"
      "data       {}\n"
      "workers    {}\n",
      o.model.file.value_or(o.model.name),
      short_count(parameter_count(job.execution.program)),
      count_text(job.choice.shape.stages, "stage"),
      cut_text(job),
      schedule_text(job),
      count_text(job.choice.layout.ranks(), "rank"),
      batch_text(job, rows),
      o.optimizer.name,
      rate_text(o.optimizer, job.choice.steps),
      job.choice.steps,
      data_text(job),
      workers_text(job));
  return saves(o.keeping) ? text : text + "saves nothing: give --save-dir DIR\n";
}

}  // namespace stagecraft::tools

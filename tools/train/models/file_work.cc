#include "stagecraft/tools/train/models/file_work.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft::tools {
namespace {

// Measured: memory of a captured operator beside its tensors.
constexpr double kBytesToDescribeAnOperator = 16.0 * 1024;

ModelFile read_model(const std::string& path, double most) {
  std::error_code failure;
  const auto size = static_cast<double>(std::filesystem::file_size(path, failure));
  if (!failure && size > most) {
    throw Error(
        Errc::DeviceOutOfMemory,
        fmt::format("--model-file expects a model that fits into memory, {} are left; found "
                    "{} at '{}'",
                    bytes_text(most),
                    bytes_text(size),
                    path));
  }
  return load_model(path);
}

/// A model that stays whole needs no measurement.
Cut usual_cut(int stages) {
  return stages == 1 ? Cut(At{}) : Cut(Balanced{.stages = stages});
}

double bytes_of(const std::vector<NamedTensor>& tensors) {
  std::set<const void*> seen;
  double bytes = 0.0;
  for (const NamedTensor& t : tensors) {
    if (seen.insert(t.tensor.unsafeGetTensorImpl()).second) {
      bytes += static_cast<double>(t.tensor.nbytes());
    }
  }
  return bytes;
}

}  // namespace

FileWork::FileWork(const TrainOptions& options, double most)
    : options_(options), data_(*options.data), model_(read_model(*options.model_file, most)) {
  refuse_unsupported(model_->path, model_->unsupported);
  describe_inputs(*model_, data_);
  std::map<const void*, std::string> first;
  for (const bool buffer : {false, true}) {
    for (const NamedTensor& t : buffer ? model_->buffers : model_->parameters) {
      const auto [known, added] = first.emplace(t.tensor.unsafeGetTensorImpl(), t.name);
      names_.push_back({t.name, known->second, buffer ? t.tensor : at::Tensor()});
    }
  }
  double operators = 0.0;
  for (const auto& [name, count] : model_->operators) {
    operators += count;
  }
  bytes_ = {.parameters = bytes_of(model_->parameters),
            .buffers = bytes_of(model_->buffers),
            .description = operators * kBytesToDescribeAnOperator,
            .batch = data_.bytes_of_step()};
  bytes_.file = bytes_.parameters + bytes_.buffers;
}

TrainOptions FileWork::settled(const TrainOptions& options) const {
  TrainOptions settled = options;
  if (options.microbatches && *options.microbatches != data_.microbatches()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("--microbatches expects {}, as '{}' has them in a step, found {}; leave "
                    "it out",
                    data_.microbatches(),
                    data_.folder(),
                    *options.microbatches));
  }
  settled.microbatches = data_.microbatches();
  const std::int64_t most = data_.steps() / options.accumulate;
  if (most == 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("--accumulate expects at most {}, as many batches as '{}' has, found "
                            "{}; give fewer, or more data",
                            data_.steps(),
                            data_.folder(),
                            options.accumulate));
  }
  const std::string steps = fmt::format(
      "at most {}, as many as '{}' has{}",
      most,
      data_.folder(),
      options.accumulate == 1 ? "" : fmt::format(" of {} batches each", options.accumulate));
  if (options.all_steps) {
    settled.steps = most;
  } else if (options.steps > most) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "--steps expects {}, found {}; give fewer, or more data", steps, options.steps));
  }
  if (options.warmup > settled.steps) {
    throw Error(Errc::UsageArgument,
                fmt::format("--warmup expects {}, found {}", steps, options.warmup));
  }
  return settled;
}

WorkBytes FileWork::bytes(const ScheduleChoice& /*choice*/) const {
  return bytes_;
}

Program FileWork::compile(const ScheduleChoice& choice) {
  if (options_.load_weights) {
    load_weights(*options_.load_weights,
                 read_weights(*options_.load_weights),
                 model_->parameters,
                 model_->buffers);
  }
  Program program = stagecraft::compile(*model_,
                                        {.inputs = data_.batch(0),
                                         .microbatches = choice.microbatches,
                                         .cut = choice.cut.value_or(usual_cut(choice.stages)),
                                         .recompute = options_.recompute});
  model_.reset();
  return program;
}

WorkBatch FileWork::batch(std::int64_t step, const ScheduleChoice& /*choice*/) const {
  return {data_.batch(step), {}};
}

WorkBatch FileWork::evaluation(const ScheduleChoice& /*choice*/) const {
  throw Error(Errc::Internal, "a folder of microbatches has none for evaluations");
}

std::optional<std::int64_t> FileWork::tokens(const ScheduleChoice& /*choice*/) const {
  return std::nullopt;
}

std::vector<NamedTensor> FileWork::all_names(std::vector<NamedTensor> trained) const {
  std::map<std::string, at::Tensor> by_name;
  for (NamedTensor& t : trained) {
    by_name.emplace(std::move(t.name), std::move(t.tensor));
  }
  std::vector<NamedTensor> all;
  for (const auto& [name, first, untouched] : names_) {
    auto found = by_name.find(name);
    found = found != by_name.end() ? found : by_name.find(first);
    const at::Tensor tensor = found != by_name.end() ? found->second : untouched;
    if (tensor.defined()) {
      all.push_back({name, tensor});
    }
  }
  return all;
}

}  // namespace stagecraft::tools

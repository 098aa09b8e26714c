#include "stagecraft/tools/train/work/file_work.h"

#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/microbatch_files.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/tools/train/work/asked_weights.h"

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

/// An evaluation runs the microbatches of the program.
/// Errors: UsageFile.
void require_same_microbatches(const ModelData& training, const ModelData& evaluation) {
  const auto refuse = [](const std::string& where, const std::string& what) {
    throw Error(Errc::UsageFile, fmt::format("{}: {}", where, what));
  };
  if (evaluation.microbatches() != training.microbatches()) {
    refuse(evaluation.folder(),
           fmt::format("the data for evaluations expect {} in a step, as {} has them, found {}; "
                       "write their steps anew",
                       count_text(training.microbatches(), "microbatch"),
                       training.folder(),
                       evaluation.microbatches()));
  }
  const auto& wanted = training.arguments();
  const auto& found = evaluation.arguments();
  if (found.size() != wanted.size()) {
    refuse(evaluation.folder(),
           fmt::format("the data for evaluations expect {} in a microbatch, as {} has them, found "
                       "{}",
                       count_text(wanted.size(), "argument"),
                       training.folder(),
                       found.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] != wanted[i]) {
      refuse(evaluation.where(0, 0, i),
             fmt::format("the data for evaluations expect {}, as {} has it, found {}",
                         to_string(wanted[i]),
                         training.where(0, 0, i),
                         to_string(found[i])));
    }
  }
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

ModelFile FileWork::read() const {
  ModelFile model = read_model(*request_.model.file, most_);
  refuse_unsupported(model.path, model.unsupported);
  describe_inputs(model, *data_);
  return model;
}

FileWork::FileWork(const WorkRequest& request, double most)
    : request_(request),
      data_(std::make_unique<MicrobatchFiles>(*request.data.folder, request.seed)),
      evaluation_(request.evaluation ? std::make_unique<MicrobatchFiles>(*request.evaluation)
                                     : nullptr),
      most_(most),
      model_(read()) {
  if (evaluation_) {
    require_same_microbatches(*data_, *evaluation_);
  }
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
            .batch = data_->bytes_of_step()};
  bytes_.file = bytes_.parameters + bytes_.buffers;
}

std::optional<FixedData> FileWork::fixed_data() const {
  return FixedData{
      .folder = data_->folder(), .microbatches = data_->microbatches(), .batches = data_->steps()};
}

WorkBytes FileWork::bytes(const WorkShape& /*shape*/) const {
  return bytes_;
}

/// Releases the model: a program has a copy of what it needs.
Program FileWork::compile(const WorkShape& shape) {
  ModelFile model = model_ ? std::move(*model_) : read();
  model_.reset();
  load_asked_weights(request_, model.parameters, model.buffers);
  return stagecraft::compile(model,
                             {.inputs = data_->batch(0),
                              .microbatches = shape.microbatches,
                              .cut = shape.cut.value_or(usual_cut(shape.stages)),
                              .recompute = request_.recompute});
}

WorkBatch FileWork::batch(std::int64_t step, const WorkShape& /*shape*/) const {
  return {data_->batch(step), {}};
}

std::int64_t FileWork::evaluation_batches(const WorkShape& /*shape*/) const {
  return evaluation_->steps();
}

WorkBatch FileWork::evaluation(std::int64_t number, const WorkShape& /*shape*/) const {
  return {evaluation_->batch(number), {}};
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

#include "stagecraft/tools/train/work/file_work.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/open_data.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/tools/train/work/asked_weights.h"

namespace stagecraft::tools {
namespace {

// Measured: memory of a captured operator beside its tensors.
constexpr double kBytesToDescribeAnOperator = 16.0 * 1024;
constexpr double kBytesToOrderASample = 8.0;  // EpochOrder

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

/// Opens `data`, unless they are open in the requested microbatches, or come in their own.
const ModelData& opened(std::unique_ptr<const ModelData>& data,
                        const std::string& folder,
                        const DataRequest& request) {
  const bool fits = data && (!data->samples() ||
                             (data->microbatches() == request.microbatches &&
                              data->arguments().front().sizes.front() == request.microbatch_size));
  if (!fits) {
    data = open_data(folder, request);
  }
  return *data;
}

/// An evaluation runs the microbatches of the program, and its first batch has all of a step.
/// Errors: UsageFile.
void require_same_microbatches(const ModelData& training, const ModelData& evaluation) {
  const auto refuse = [](const std::string& where, const std::string& what) {
    throw Error(Errc::UsageFile, fmt::format("{}: {}", where, what));
  };
  if (evaluation.samples() && evaluation.steps() < training.microbatches()) {
    refuse(evaluation.folder(),
           fmt::format("expected samples for at least the {} of a step, found {} for evaluations; "
                       "use more samples, or fewer or smaller microbatches",
                       count_text(training.microbatches(), "microbatch"),
                       count_text(*evaluation.samples(), "sample")));
  }
  if (!evaluation.samples() && evaluation.microbatches() != training.microbatches()) {
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

/// Returns whether an operator refused a token, a class or another index, by LibTorch's words.
bool refuses_an_index(std::string_view text) {
  return text.find("out of range") != text.npos || text.find("out of bounds") != text.npos;
}

std::string looked_for_in(std::string text, const std::string& files) {
  text.resize(text.find_last_not_of('\n') + 1);
  return fmt::format("{}; look for a number that is too large or negative in {}", text, files);
}

/// Compiles on the first step of the data, of which the model runs some microbatches.
Program compiled_on(const ModelData& data, const ModelFile& model, const CompileOptions& options) {
  try {
    return stagecraft::compile(model, options);
  } catch (const Error& error) {
    if (error.code() != Errc::CompileCapture || !refuses_an_index(error.text())) {
      throw;
    }
    throw Error(error.code(), looked_for_in(error.text(), "the first step of " + data.folder()))
        .with(error.context());
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
  return model;
}

const ModelData& FileWork::data(int microbatches, std::int64_t microbatch_size) const {
  return opened(data_,
                *request_.data.folder,
                {.inputs = inputs_,
                 .microbatches = microbatches,
                 .microbatch_size = microbatch_size,
                 .held_out = request_.data.held_out,
                 .seed = request_.seed});
}

const ModelData& FileWork::evaluation_data(int microbatches, std::int64_t microbatch_size) const {
  const bool apart = request_.evaluation.has_value();
  const ModelData& training = data(microbatches, microbatch_size);
  const std::vector<std::int64_t>& sizes = training.arguments().front().sizes;
  return opened(evaluation_,
                request_.evaluation.value_or(*request_.data.folder),
                {.inputs = inputs_,
                 .microbatches = 1,  // so that the last batch may have fewer than a step
                 .microbatch_size = sizes.empty() ? 1 : sizes.front(),
                 .held_out = apart ? 0.0 : request_.data.held_out,
                 .part = apart ? DataPart::Training : DataPart::HeldOut,
                 .seed = std::nullopt});
}

FileWork::FileWork(const WorkRequest& request, double most)
    : request_(request), most_(most), model_(read()), inputs_(model_->inputs) {
  const std::int64_t samples = stated_microbatch_size(inputs_).value_or(1);
  describe_inputs(*model_, data(1, samples));
  if (request_.evaluates) {
    (void)evaluation_data(1, samples);
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
            .description = operators * kBytesToDescribeAnOperator};
  bytes_.file = bytes_.parameters + bytes_.buffers;
}

std::optional<FixedData> FileWork::fixed_data() const {
  if (data_->samples()) {
    return std::nullopt;
  }
  return FixedData{
      .folder = data_->folder(), .microbatches = data_->microbatches(), .batches = data_->steps()};
}

std::optional<SampleData> FileWork::sample_data() const {
  if (!data_->samples()) {
    return std::nullopt;
  }
  return SampleData{.folder = data_->folder(),
                    .samples = *data_->samples(),
                    .held_out = data_->samples_apart(),
                    .inputs = inputs_};
}

WorkBytes FileWork::bytes(const WorkShape& shape) const {
  WorkBytes bytes = bytes_;
  const ModelData& taken = data(shape);
  bytes.batch = taken.bytes_of_step() +
                kBytesToOrderASample * static_cast<double>(taken.samples().value_or(0));
  return bytes;
}

/// Releases the model: a program has a copy of what it needs.
Program FileWork::compile(const WorkShape& shape) {
  ModelFile model = model_ ? std::move(*model_) : read();
  model_.reset();
  const ModelData& taken = data(shape);
  if (request_.evaluates) {
    require_same_microbatches(taken, evaluation_data(shape));
  }
  model.inputs = inputs_;
  describe_inputs(model, taken);
  load_asked_weights(request_, model.parameters, model.buffers);
  return compiled_on(taken,
                     model,
                     {.inputs = taken.batch(0),
                      .microbatches = shape.microbatches,
                      .cut = shape.cut.value_or(usual_cut(shape.stages)),
                      .recompute = request_.recompute});
}

WorkBatch FileWork::batch(std::int64_t step, const WorkShape& shape) const {
  return {data(shape).batch(step), {}};
}

std::string FileWork::located(const std::string& text,
                              std::int64_t step,
                              int microbatch,
                              const WorkShape& shape) const {
  if (!refuses_an_index(text)) {
    return text;
  }
  const ModelData& taken = data(shape);
  if (taken.samples()) {  // of any shards
    return looked_for_in(text, taken.folder());
  }
  std::vector<std::string> files;
  for (std::size_t i = 0; i < taken.arguments().size(); ++i) {
    if (c10::isIntegralType(taken.arguments()[i].dtype, /*includeBool=*/false)) {
      files.push_back(taken.where(step, microbatch, i));
    }
  }
  return files.empty() ? text : looked_for_in(text, fmt::format("{}", fmt::join(files, ", ")));
}

std::int64_t FileWork::evaluation_batches(const WorkShape& shape) const {
  const ModelData& all = evaluation_data(shape);
  const std::int64_t in_batch = data(shape).microbatches() / all.microbatches();
  return (all.steps() + in_batch - 1) / in_batch;
}

/// The last batch may have fewer microbatches.
WorkBatch FileWork::evaluation(std::int64_t number, const WorkShape& shape) const {
  const ModelData& all = evaluation_data(shape);
  const std::int64_t in_batch = data(shape).microbatches() / all.microbatches();
  const std::int64_t first = number * in_batch;
  return {all.batch(first, std::min(in_batch, all.steps() - first)), {}};
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

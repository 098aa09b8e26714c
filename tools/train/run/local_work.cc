#include "stagecraft/tools/train/run/local_work.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/data/local_source.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/open_data.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/catalog/open_work.h"
#include "stagecraft/tools/train/verify/weights_hash.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kSource = "stagecraft train";

// Keys of the argument of a source: a folder of data, or what a model's batch depends on.
constexpr const char* kFolder = "data";
constexpr const char* kHeldOut = "held_out";
constexpr const char* kInputs = "inputs";  // names and sizes
constexpr const char* kModel = "model";
constexpr const char* kSizes = "sizes";
constexpr const char* kText = "text";
constexpr const char* kImages = "images";
constexpr const char* kSeed = "seed";
constexpr const char* kMicrobatches = "microbatches";
constexpr const char* kMicrobatchSize = "microbatch_size";
constexpr const char* kFirst = "first batch";  // its hash

using Object = nlohmann::ordered_json;

class FolderSource final : public StepSource {
 public:
  FolderSource(const std::string& folder, const DataRequest& request)
      : data_(open_data(folder, request)) {}

  LabeledBatch batch(std::int64_t number) override { return {data_->batch(number), {}}; }

  std::optional<LabeledBatch> part(const BatchPart& part) override {
    LabeledBatch microbatch;
    for (const at::Tensor& tensor : data_->microbatch(part.batch, part.microbatch)) {
      if (tensor.dim() == 0) {
        return std::nullopt;  // in a batch it would get a dimension
      }
      microbatch.inputs.emplace_back(tensor);
    }
    return microbatch;
  }

 private:
  const std::unique_ptr<const ModelData> data_;
};

/// Draws batches of a model of the catalog.
class ModelSource final : public StepSource {
 public:
  ModelSource(const WorkRequest& request, const WorkShape& shape)
      : work_(open_work(request, memory_left())), shape_(shape) {}

  LabeledBatch batch(std::int64_t number) override {
    WorkBatch drawn = work_->batch(number, shape_);
    return {std::move(drawn.inputs), std::move(drawn.labels)};
  }

 private:
  const std::unique_ptr<Work> work_;
  const WorkShape shape_;
};

std::string hash_of(const Batch& inputs, const Batch& labels) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const Batch* side : {&inputs, &labels}) {
    for (const BatchTensor& one : *side) {
      tensors.emplace_back("", one.tensor);
    }
  }
  return weights_sha256(tensors);
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).string();
}

/// Returns what a batch depends on.
Object describe(const TrainJob& job) {
  const ModelChoice& model = job.options.model;
  Object object{{kModel, model.name},
                {kSizes, model.sizes.values()},
                {kSeed, job.start.seed},
                {kMicrobatches, job.choice.shape.microbatches},
                {kMicrobatchSize, job.choice.shape.microbatch_size}};
  if (find_model(model.name).data == "text") {
    object[kText] = absolute(job.options.data.text);
  } else if (job.options.data.images) {
    object[kImages] = absolute(*job.options.data.images);
  }
  return object;
}

/// Returns what a batch of a model from a file depends on.
Object describe_folder(const TrainJob& job) {
  Object object{{kFolder, absolute(*job.options.data.folder)}, {kSeed, job.start.seed}};
  if (const std::optional<SampleData> data = job.work->sample_data()) {
    object[kMicrobatches] = job.choice.shape.microbatches;
    object[kMicrobatchSize] = job.choice.shape.microbatch_size;
    object[kHeldOut] = job.options.data.held_out;
    for (const ModelTensor& input : data->inputs) {
      object[kInputs].push_back(Object::array({input.name, input.sizes}));
    }
  }
  return object;
}

DataRequest folder_request(const nlohmann::json& object) {
  DataRequest request{.seed = object.at(kSeed).get<std::uint64_t>()};
  if (object.contains(kInputs)) {
    for (const auto& input : object.at(kInputs)) {
      request.inputs.push_back({.name = input.at(0).get<std::string>(),
                                .known = true,
                                .sizes = input.at(1).get<std::vector<std::int64_t>>()});
    }
    request.microbatches = object.at(kMicrobatches).get<int>();
    request.microbatch_size = object.at(kMicrobatchSize).get<std::int64_t>();
    request.held_out = object.at(kHeldOut).get<double>();
  }
  return request;
}

std::unique_ptr<StepSource> model_source(const nlohmann::json& object) {
  WorkRequest request;  // not as one aggregate, whose parts g++ 12 destroys wrongly if one throws
  request.seed = object.at(kSeed).get<std::uint64_t>();
  request.model.name = object.at(kModel).get<std::string>();
  for (const auto& [name, value] : object.at(kSizes).items()) {
    request.model.sizes.set(name, value.get<double>());
  }
  if (object.contains(kText)) {
    request.data.text = object.at(kText).get<std::string>();
  }
  if (object.contains(kImages)) {
    request.data.images = object.at(kImages).get<std::string>();
  }
  return std::make_unique<ModelSource>(
      request,
      WorkShape::uncut(object.at(kMicrobatches).get<int>(),
                       object.at(kMicrobatchSize).get<std::int64_t>()));
}

std::unique_ptr<StepSource> make_local_work(const std::string& argument) {
  const auto object = nlohmann::json::parse(argument);
  std::unique_ptr<StepSource> source;
  if (object.contains(kFolder)) {
    source = std::make_unique<FolderSource>(object.at(kFolder).get<std::string>(),
                                            folder_request(object));
  } else {
    source = model_source(object);
  }
  const LabeledBatch first = source->batch(0);
  if (hash_of(first.inputs, first.labels) != object.at(kFirst).get<std::string>()) {
    throw Error(Errc::UsageFile,
                "the data on this host differ from those where the run was started: the first "
                "batch is another one; copy them to the same path on every host, or leave out "
                "--read-on-workers");
  }
  return source;
}

}  // namespace

void register_local_work() {
  [[maybe_unused]] static const bool registered = [] {
    register_source(kSource, make_local_work);
    return true;
  }();
}

LocalBatch first_local_batch(const TrainJob& job) {
  const TrainOptions& o = job.options;
  Object object;
  if (o.model.file) {
    object = describe_folder(job);
  } else {
    const bool text = find_model(o.model.name).data == "text";
    if (text && !std::filesystem::is_regular_file(o.data.text)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--read-on-workers expects a text that every worker can read, found "
                              "'{}', which is no file; leave one of the two out",
                              o.data.text));
    }
    object = describe(job);
  }
  const WorkBatch first = job.work->batch(0, job.choice.shape);
  object[kFirst] = hash_of(first.inputs, first.labels);
  try {
    return {.source = kSource, .argument = object.dump(), .number = 0};
  } catch (const nlohmann::json::type_error&) {
    throw Error(Errc::UsageArgument,
                "--read-on-workers expects names of files in UTF-8; rename them");
  }
}

}  // namespace stagecraft::tools

#include "stagecraft/tools/train/run/local_work.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/data/local_source.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/microbatch_files.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/job/planned.h"
#include "stagecraft/tools/train/run/weights_hash.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kSource = "stagecraft train";

// Keys of a source's argument: a folder of microbatches, or arguments of the command.
constexpr const char* kFolder = "data";
constexpr const char* kWords = "words";
constexpr const char* kFirst = "first batch";

class FolderSource final : public StepSource {
 public:
  explicit FolderSource(const std::string& folder) : files_(folder) {}

  LabeledBatch batch(std::int64_t number) override { return {files_.batch(number), {}}; }

  std::optional<LabeledBatch> part(const BatchPart& part) override {
    LabeledBatch microbatch;
    for (const at::Tensor& tensor : files_.microbatch(part.batch, part.microbatch)) {
      if (tensor.dim() == 0) {
        return std::nullopt;  // in a batch it would get a dimension
      }
      microbatch.inputs.emplace_back(tensor);
    }
    return microbatch;
  }

 private:
  const MicrobatchFiles files_;
};

class ModelSource final : public StepSource {
 public:
  explicit ModelSource(const std::vector<std::string>& words)
      : options_(std::get<TrainOptions>(parse_train_options(words))),
        work_(open_work(options_, memory_left())),
        choice_(uncut(options_)) {}

  LabeledBatch batch(std::int64_t number) override {
    WorkBatch drawn = work_->batch(number, choice_);
    return {std::move(drawn.inputs), std::move(drawn.labels)};
  }

 private:
  const TrainOptions options_;
  const std::unique_ptr<Work> work_;
  const ScheduleChoice choice_;  ///< a batch depends only on its microbatches
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

std::unique_ptr<StepSource> make_local_work(const std::string& argument) {
  const auto object = nlohmann::json::parse(argument);
  std::unique_ptr<StepSource> source;
  if (object.contains(kFolder)) {
    source = std::make_unique<FolderSource>(object.at(kFolder).get<std::string>());
  } else {
    source = std::make_unique<ModelSource>(object.at(kWords).get<std::vector<std::string>>());
  }
  const LabeledBatch first = source->batch(0);
  if (hash_of(first.inputs, first.labels) != object.at(kFirst).get<std::string>()) {
    throw Error(Errc::UsageFile,
                "what is to be learnt is not the same here as where the run was started: its first "
                "batch is another; copy it to the same place on every host, or leave out "
                "--read-on-workers");
  }
  return source;
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).string();
}

/// Returns the options on which a batch depends.
std::vector<std::string> words_of(const TrainOptions& o, int microbatches) {
  const ModelEntry& model = find_model(o.model);
  std::vector<std::string> words{"--model",
                                 o.model,
                                 "--seed",
                                 fmt::format("{}", o.seed),
                                 "--microbatch-size",
                                 fmt::format("{}", o.microbatch_size),
                                 "--microbatches",
                                 fmt::format("{}", microbatches)};
  if (model.data == "text") {
    words.insert(words.end(), {"--text", absolute(o.text)});
  } else if (o.images) {
    words.insert(words.end(), {"--images", absolute(*o.images)});
  }
  for (const ModelSize& size : model.sizes) {
    if (o.sizes.has(size.name)) {
      words.insert(words.end(),
                   {fmt::format("--{}", size.name), fmt::format("{}", o.sizes.real(size.name))});
    }
  }
  return words;
}

}  // namespace

void register_local_work() {
  register_source(kSource, make_local_work);
}

LocalBatch first_local_batch(const TrainJob& job) {
  const TrainOptions& o = job.options;
  nlohmann::ordered_json object;
  if (o.model_file) {
    object[kFolder] = absolute(*o.data);
  } else {
    const bool text = find_model(o.model).data == "text";
    if (text && !std::filesystem::is_regular_file(o.text)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--read-on-workers expects a text that every worker can read, found "
                              "'{}', which is no file; leave one of the two out",
                              o.text));
    }
    object[kWords] = words_of(o, job.choice.microbatches);
  }
  const WorkBatch first = job.work->batch(0, job.choice);
  object[kFirst] = hash_of(first.inputs, first.labels);
  try {
    return {.source = kSource, .argument = object.dump(), .number = 0};
  } catch (const nlohmann::json::type_error&) {
    throw Error(Errc::UsageArgument,
                "--read-on-workers expects names of files in UTF-8; rename them");
  }
}

}  // namespace stagecraft::tools

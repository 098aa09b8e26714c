#include "stagecraft/tools/eval/predict.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/open_data.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/import/model_text.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/eval/options.h"
#include "stagecraft/tools/eval/prediction_files.h"
#include "stagecraft/tools/eval/prediction_program.h"
#include "stagecraft/tools/train/work/asked_weights.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

/// Output describes one output of a microbatch.
struct Output {
  std::string type;
  std::vector<std::int64_t> sizes;
};

struct Predicted {
  std::vector<Output> outputs;
  std::int64_t microbatches = 0;
  std::int64_t left_out = 0;  ///< samples that fill no microbatch
  double seconds = 0.0;       ///< with the capture of the model in evaluation mode
};

/// Keeps MF-2.
Batch inputs_of(const ModelData& data, std::int64_t step, int microbatch) {
  Batch inputs;
  for (const at::Tensor& tensor : data.microbatch(step, microbatch)) {
    inputs.emplace_back(tensor.dim() == 0 ? tensor.view({1}) : tensor);
  }
  return inputs;
}

/// Reads the microbatches of the data, each as a batch.
class MicrobatchSource final : public BatchSource {
 public:
  explicit MicrobatchSource(const ModelData& data) : data_(data) {}

  void begin_epoch() override { next_ = 0; }

  std::optional<LabeledBatch> next() override {
    if (next_ == data_.steps() * data_.microbatches()) {
      return std::nullopt;
    }
    const std::int64_t step = next_ / data_.microbatches();
    const auto microbatch = static_cast<int>(next_ % data_.microbatches());
    ++next_;
    return LabeledBatch{inputs_of(data_, step, microbatch), {}};
  }

 private:
  const ModelData& data_;
  std::int64_t next_ = 0;
};

/// Opens shards in steps of one microbatch, in the order of their files.
/// Errors: those of open_data; UsageArgument for a size of whole microbatches.
std::unique_ptr<ModelData> open_inputs(const PredictRequest& request, const ModelFile& model) {
  const std::int64_t usual = stated_microbatch_size(model.inputs).value_or(kUsualMicrobatchSize);
  std::unique_ptr<ModelData> data =
      open_data(*request.work.data.folder,
                {.inputs = model.inputs,
                 .microbatch_size = request.microbatch_size.value_or(usual),
                 .seed = std::nullopt});
  if (!data->samples() && request.microbatch_size) {
    throw Error(Errc::UsageArgument,
                fmt::format("--microbatch-size expects shards of samples, found whole microbatches "
                            "in '{}'; leave it out",
                            data->folder()));
  }
  return data;
}

std::int64_t samples_left_out(const ModelData& data) {
  return data.samples() ? *data.samples() - data.steps() * data.arguments().front().sizes.front()
                        : 0;
}

std::vector<Output> outputs_of_program(const Program& program) {
  std::vector<Output> outputs;
  const Graph& graph = program.compiled().graph;
  for (const ValueId id : graph.outputs) {
    const Value& value = graph.at(id);
    outputs.push_back({type_text(value.dtype), value.sizes});
  }
  return outputs;
}

Predicted predicted(const PredictRequest& request, Console& console) {
  ModelFile model = load_model(*request.work.model.file);
  refuse_unsupported(model.path, model.unsupported);
  const std::unique_ptr<ModelData> opened = open_inputs(request, model);
  const ModelData& data = *opened;
  describe_inputs(model, data);
  load_asked_weights(request.work, model.parameters, model.buffers);
  const Microbatches all{.steps = data.steps(), .in_step = data.microbatches()};
  StatusLine line(console, request.json);
  line.say("compiling the model ...");
  const Program program =
      prediction_program(std::move(model), inputs_of(data, 0, 0), request.precision);
  const std::vector<Output> outputs = outputs_of_program(program);
  PredictionFiles files(request.output, all, outputs.size());
  Trainer trainer(Cluster::local(1),
                  program,
                  "1f1b",
                  Sgd{},
                  {.seed = 0, .threads_per_worker = static_cast<int>(request.threads)});
  const auto begin = std::chrono::steady_clock::now();
  MicrobatchSource source(data);
  std::int64_t done = 0;
  trainer.predict(source, [&](std::vector<at::Tensor> found) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].sizes.empty()) {
        found[i] = found[i].view(at::IntArrayRef());  // predict() returns an element per microbatch
      }
    }
    files.add(found);
    line.say(fmt::format("microbatch {} of {} ...", ++done, all.all()));
  });
  files.close();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return {.outputs = outputs,
          .microbatches = all.all(),
          .left_out = samples_left_out(data),
          .seconds = seconds.count()};
}

std::string to_text(const PredictRequest& request, const Predicted& predicted) {
  std::string text = fmt::format("wrote {} of {} to {}, in {:.2f} s\n",
                                 count_text(predicted.outputs.size(), "output"),
                                 count_text(predicted.microbatches, "microbatch"),
                                 request.output,
                                 predicted.seconds);
  if (predicted.left_out > 0) {
    text += fmt::format(
        "left out: the last {}, too few for a microbatch; --microbatch-size 1 takes "
        "all, if the model has that size open\n",
        count_text(predicted.left_out, "sample"));
  }
  for (std::size_t i = 0; i < predicted.outputs.size(); ++i) {
    const Output& output = predicted.outputs[i];
    text += fmt::format("  step<k>_mb<j>_out{}  {} {}\n", i, output.type, shape_text(output.sizes));
  }
  return text;
}

std::string to_json(const PredictRequest& request, const Predicted& predicted) {
  auto outputs = nlohmann::ordered_json::array();
  for (const Output& output : predicted.outputs) {
    outputs.push_back({{"type", output.type}, {"shape", output.sizes}});
  }
  return command_json("predict",
                      {{"model", *request.work.model.file},
                       {"microbatches", predicted.microbatches},
                       {"outputs", outputs},
                       {"left_out", predicted.left_out},
                       {"seconds", predicted.seconds},
                       {"file", request.output}});
}

/// Fails before the model is compiled. A file among the data would be data of the next run. Errors:
/// UsageFile.
void check_output(const std::string& output, const std::string& data) {
  try {
    check_weights_place(output, {});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--output: {}", error.message()));
  }
  std::error_code failure;
  const fs::path folder = fs::absolute(output).parent_path();
  if (is_weights_file(output) && fs::equivalent(folder, data, failure)) {
    throw Error(Errc::UsageFile,
                fmt::format("--output: {}: expected a file outside the folder of --data, where it "
                            "would be data; name another place",
                            output));
  }
}

}  // namespace

ExitCode predict_model(const std::vector<std::string>& words, Console& console) {
  const auto parsed = parse_predict_options(words);
  if (const auto* help = std::get_if<EvalHelp>(&parsed)) {
    print(help->text, console);
    return ExitCode::Good;
  }
  const auto& request = std::get<PredictRequest>(parsed);
  check_output(request.output, *request.work.data.folder);
  const SingleThreaded alone;  // this thread's computation must not take threads from the rank
  const Predicted result = predicted(request, console);
  print(request.json ? to_json(request, result) : to_text(request, result), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools

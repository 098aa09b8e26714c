#include "stagecraft/tools/eval/options.h"

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/catalog/model_options.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kEvalCommand = "stagecraft eval";
constexpr const char* kEvalAbout =
    "Prints the mean loss of a model on data, in evaluation mode: dropout off, running statistics "
    "used. See docs/models.md.";
constexpr const char* kEvalFooter =
    "A model file is evaluated on all of --data, or with --held-out on the part that a training "
    "holds out, and a model by name on the batch that `stagecraft train --eval-every` evaluates. "
    "Samples of shards that fill no microbatch are left out: for the loss of a training give its "
    "--microbatch-size.\n"
    "Exit status: 0 success; 1 the model cannot be evaluated; 2 wrong usage, or a file that cannot "
    "be used.\n"
    "Example: stagecraft eval --model-file model.pt2 --data held-out --load-weights weights";

constexpr const char* kPredictCommand = "stagecraft predict";
constexpr const char* kPredictAbout =
    "Runs a model file forward on data, in evaluation mode, and writes its outputs, one file for "
    "each output of each microbatch. See docs/models.md.";
constexpr const char* kPredictFooter =
    "The data have the inputs of the model alone. Output i of microbatch j of step k is "
    "step<k>_mb<j>_out<i>; the microbatches of shards are steps of one.\n"
    "Exit status: 0 success; 1 the model cannot predict; 2 wrong usage, a file that cannot be "
    "used, or output that cannot be written.\n"
    "Example: stagecraft predict --model-file model.pt2 --data inputs -o predictions";

constexpr std::int64_t kMostThreadsOfOne = 1024;  // more than any machine has processors

void add_weights(CLI::App& app, WorkRequest& work) {
  app.add_option("--load-weights",
                 work.weights,
                 "weights of `stagecraft train --save-weights` [those of the model]")
      ->type_name("DIR|FILE.safetensors");
  app.add_option("--load", work.checkpoint, "checkpoint with the weights instead")
      ->type_name("FILE");
}

void add_computing(CLI::App& app, Precision& precision, std::int64_t& threads) {
  add_choice<Precision>(
      app,
      "--precision",
      precision,
      {{"fp32", Precision::Float32}, {"bf16", Precision::BFloat16}, {"fp16", Precision::Float16}},
      "bf16, fp16: compute in bfloat16 or float16 where that is safe (autocast)");
  app.add_option("--threads-per-worker", threads, "threads inside one operator")
      ->check(whole_number(1, kMostThreadsOfOne));
}

/// Both forms name the folder.
void drop_slashes(std::string& place) {
  while (place.size() > 1 && place.ends_with('/')) {
    place.pop_back();
  }
}

void add_microbatch_size(CLI::App& app, std::optional<std::int64_t>& size, const std::string& of) {
  app.add_option(
         "--microbatch-size",
         size,
         fmt::format("samples per microbatch, of {} [4, or the number of the model's file]", of))
      ->check(whole_number(1));
}

void settle_weights(const char* command, WorkRequest& work) {
  if (work.checkpoint && work.weights) {
    wrong_usage(command,
                "--load-weights expects no --load, whose checkpoint has weights; leave one of the "
                "two out");
  }
  if (work.weights) {
    drop_slashes(*work.weights);
  }
}

}  // namespace

std::variant<EvalRequest, EvalHelp> parse_eval_options(const std::vector<std::string>& arguments) {
  EvalRequest request;
  CLI::App app(kEvalAbout, kEvalCommand);
  app.option_defaults()->always_capture_default();
  add_model_options(app, request.work.model, request.work.data);
  add_weights(app, request.work);
  app.add_option(
         "--microbatches", request.microbatches, "microbatches per batch, of a model by name [8]")
      ->check(whole_number(1));
  add_microbatch_size(app, request.microbatch_size, "a model by name or of shards");
  app.add_option("--seed",
                 request.seed,
                 "seed of weights and of the choice of data, for a model by name [that of --load, "
                 "or 0]")
      ->check(whole_number(0));
  add_computing(app, request.precision, request.threads);
  app.add_flag("--json", request.json, "print one JSON object");
  app.footer(kEvalFooter);
  if (const auto help = parse_command_line(app, arguments)) {
    return EvalHelp{*help};
  }
  settle_model(kEvalCommand, app, request.work.model, request.work.data, {"--seed"});
  settle_weights(kEvalCommand, request.work);
  request.work.evaluates = true;
  if (request.work.data.held_out == 0.0) {
    request.work.evaluation = request.work.data.folder;  // all of it
  }
  return request;
}

std::variant<PredictRequest, EvalHelp> parse_predict_options(
    const std::vector<std::string>& arguments) {
  PredictRequest request;
  CLI::App app(kPredictAbout, kPredictCommand);
  app.option_defaults()->always_capture_default();
  app.add_option("--model-file",
                 request.work.model.file,
                 "model file that torch.export.save or torch.jit.save wrote")
      ->required()
      ->type_name("FILE");
  app.add_option("--data",
                 request.work.data.folder,
                 "folder with its inputs, in one of the forms of `stagecraft train --data`")
      ->required()
      ->type_name("DIR");
  add_weights(app, request.work);
  add_microbatch_size(app, request.microbatch_size, "shards");
  add_computing(app, request.precision, request.threads);
  app.add_option("-o,--output",
                 request.output,
                 "outputs to write: .npy files in a folder, or one .safetensors file")
      ->required()
      ->type_name("DIR|FILE.safetensors");
  app.add_flag("--json", request.json, "print one JSON object");
  app.footer(kPredictFooter);
  if (const auto help = parse_command_line(app, arguments)) {
    return EvalHelp{*help};
  }
  settle_weights(kPredictCommand, request.work);
  drop_slashes(request.output);
  return request;
}

}  // namespace stagecraft::tools

/// Tests models from files on shards of samples at the command line: the same samples in every form
/// of files, epochs, continued runs, the part that is held out, and wrong sizes.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "stagecraft/compiler/data/microbatch_files.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/import/import.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

std::string model_folder(const std::string& name) {
  return fmt::format("{}/tests/data/models/{}", STAGECRAFT_SOURCE_DIR, name);
}

/// Returns the inputs of all steps of a model, sample after sample.
std::vector<at::Tensor> samples_of(const std::string& name) {
  const MicrobatchFiles data(testing::unpacked_inputs(model_folder(name)));
  std::vector<std::vector<at::Tensor>> parts(data.arguments().size());
  for (std::int64_t step = 0; step < data.steps(); ++step) {
    const Batch batch = data.batch(step);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].push_back(batch[i].tensor);
    }
  }
  std::vector<at::Tensor> samples;
  for (const std::vector<at::Tensor>& part : parts) {
    samples.push_back(at::cat(part));
  }
  return samples;
}

/// Writes the samples as two .npy shards.
void write_npy_shards(const std::string& folder, const std::vector<at::Tensor>& samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t half = samples[i].size(0) / 2;
    write_npy(fmt::format("{}/a_arg{}.npy", folder, i), samples[i].narrow(0, 0, half));
    write_npy(fmt::format("{}/b_arg{}.npy", folder, i),
              samples[i].narrow(0, half, samples[i].size(0) - half));
  }
}

Words shard_training(const std::string& model,
                     const std::string& file,
                     const std::string& data,
                     const Words& more) {
  Words words{STAGECRAFT_COMMAND,
              "train",
              "--model-file",
              model_folder(model) + "/" + file,
              "--data",
              data,
              "--stages",
              "2",
              "--microbatches",
              "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a model from a file trains on shards of samples, bit-equal to one process",
          "[tools][train][model-file][shards]") {
  const std::string file = GENERATE("model.pt2", "model.pt");
  CAPTURE(file);
  const TemporaryFolder npy, named;
  const std::vector<at::Tensor> samples = samples_of("resnet");  // 80 in microbatches of 4
  write_npy_shards(npy.path(), samples);
  write_safetensors(named.path() + "/all.safetensors",
                    {{"arg0", samples.at(0)}, {"arg1", samples.at(1)}});
  const auto run = [&](const std::string& data, const Words& more) {
    return train_output(shard_training("resnet", file, data, more));
  };
  const TrainOutput whole = run(npy.path(), {"--verify"});
  CHECK(whole.steps.size() == 10);
  CHECK(whole.verify.at("bit_equal") == true);
  CHECK(run(named.path(), {}).sha256() == whole.sha256());
  CHECK(run(npy.path(), {"--read-on-workers"}).sha256() == whole.sha256());
  CHECK(run(npy.path(), {"--seed", "3"}).sha256() != whole.sha256());
  CHECK(run(npy.path(), {"--held-out", "0.25"}).steps.size() == 7);
}

TEST_CASE("a run says how many steps its data have, and what no step or evaluation takes",
          "[tools][train][model-file][shards]") {
  const TemporaryFolder shards;
  write_npy_shards(shards.path(), samples_of("resnet"));  // 80, of which a step takes 8
  const auto told = [](const Words& words) {
    const CommandResult result = run_here(words);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const auto of_shards = [&](const Words& more) {
    Words words{"--steps", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return told(shard_training("resnet", "model.pt2", shards.path(), words));
  };
  const std::string begin = "data       " + shards.path() + ": ";
  CHECK_THAT(of_shards({}), ContainsSubstring(begin + "80 samples in 10 steps an epoch\n"));
  CHECK_THAT(of_shards({"--held-out", "0.25", "--accumulate", "2"}),
             ContainsSubstring(begin + "60 samples in 7 batches an epoch, 4 left over; 20 held "
                                       "out\n"));
  // Five microbatches of four are two steps and a half.
  CHECK_THAT(
      of_shards({"--held-out", "0.25", "--eval-every", "1"}),
      ContainsSubstring(begin + "60 samples in 7 steps an epoch, 4 left over; 20 held out\n"));
  CHECK_THAT(of_shards({"--held-out", "0.2625", "--eval-every", "1"}),
             ContainsSubstring(begin + "59 samples in 7 steps an epoch, 3 left over; 21 held out, "
                                       "20 of them evaluated\n"));

  const std::string whole = testing::unpacked_inputs(model_folder("resnet"));
  CHECK_THAT(told({STAGECRAFT_COMMAND,
                   "train",
                   "--model-file",
                   model_folder("resnet") + "/model.pt2",
                   "--data",
                   whole,
                   "--stages",
                   "2",
                   "--steps",
                   "1"}),
             ContainsSubstring("data       " + whole + ": 5 steps an epoch\n"));
}

TEST_CASE("a run on shards that is continued gets the samples of one that was not, beyond an epoch",
          "[tools][train][model-file][shards]") {
  const TemporaryFolder data, out;
  write_npy_shards(data.path(), samples_of("resnet"));
  const std::string saved = out.path() + "/a.ckpt";
  const auto run = [&](const Words& more) {
    return train_output(shard_training("resnet", "model.pt2", data.path(), more));
  };
  const std::string whole = run({"--steps", "23"}).sha256();
  (void)run({"--steps", "13", "--save", saved});
  CHECK(run({"--steps", "23", "--load", saved}).sha256() == whole);
  CHECK(run({"--steps", "23", "--read-on-workers"}).sha256() == whole);
  CHECK(run({"--accumulate", "5", "--verify"}).steps.size() == 2);
}

TEST_CASE("a rate falls after every epoch of shards", "[tools][train][model-file][shards]") {
  const TemporaryFolder data;
  write_npy_shards(data.path(), samples_of("resnet"));  // 10 steps of 2 microbatches of 4
  const TrainOutput run = train_output(
      shard_training("resnet",
                     "model.pt2",
                     data.path(),
                     {"--steps", "21", "--lr-schedule", "epoch", "--lr-factor", "0.5"}));
  const double rate = run.steps.at(0).at("learning_rate");
  CHECK(run.steps.at(9).at("learning_rate") == rate);
  CHECK(run.steps.at(10).at("learning_rate") == rate * 0.5);
  CHECK(run.steps.at(20).at("learning_rate") == rate * 0.25);
}

TEST_CASE("a model trains on files of tokens", "[tools][train][model-file][shards]") {
  const TemporaryFolder rows, tokens;
  const at::Tensor samples = samples_of("gpt2").at(0);  // of 8 tokens below 24
  write_npy(rows.path() + "/a.npy", samples);
  std::string bytes;
  const at::Tensor flat = samples.flatten();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    bytes += static_cast<char>(flat[i].item<std::int64_t>());
    bytes += '\0';
  }
  (void)tokens.write("a.bin", bytes);
  const auto run = [&](const std::string& data) {
    return train_output(shard_training("gpt2", "model.pt2", data, {"--verify"}));
  };
  const TrainOutput found = run(tokens.path());
  CHECK(found.verify.at("bit_equal") == true);
  CHECK(found.sha256() == run(rows.path()).sha256());
}

TEST_CASE("worker processes read shards, by the names of the model's inputs",
          "[tools][train][model-file][shards][processes]") {
  const TemporaryFolder folder;
  std::vector<at::Tensor> samples = samples_of("named");
  write_safetensors(folder.path() + "/a.safetensors",
                    {{"inputs_numbers", samples.at(0)},
                     {"inputs_words", samples.at(1)},
                     {"labels", samples.at(2)}});
  const Words more{"--workers", "processes", "--read-on-workers", "--verify", "--held-out", "0.2"};
  Words words = shard_training("named", "model.pt2", folder.path(), more);
  words[7] = "1";  // stage
  CHECK(train_output(words).verify.at("bit_equal") == true);
}

TEST_CASE("a plan, a dry run and import take shards", "[tools][train][model-file][shards]") {
  const OwnCache cache;
  const TemporaryFolder data;
  write_npy_shards(data.path(), samples_of("resnet"));
  Words words = shard_training("resnet", "model.pt2", data.path(), {"--plan", "capslog"});
  words[6] = "--ranks";  // instead of --stages
  const CommandResult planned = run_here(words);
  CAPTURE(planned.out, planned.err);
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.err, ContainsSubstring("plan: note: microbatches stay as they are, 2 a step"));
  CHECK_THAT(planned.out, ContainsSubstring("planned: 2 microbatches of 4"));

  const CommandResult dry =
      run_here(shard_training("resnet", "model.pt2", data.path(), {"--dry-run"}));
  CAPTURE(dry.out, dry.err);
  CHECK(dry.exit_code == 0);

  const CommandResult imported =
      run_in_test(&tools::import_model,
                  {model_folder("resnet") + "/model.pt", "--inputs", data.path(), "--stages", "2"});
  CAPTURE(imported.out, imported.err);
  CHECK(imported.exit_code == 0);
}

TEST_CASE("sizes that do not fit shards or their model are wrong usage, by name",
          "[tools][train][model-file][shards][bad-input]") {
  const TemporaryFolder data;
  write_npy_shards(data.path(), samples_of("resnet"));
  const auto refused = [&](const std::string& model, const std::string& file, const Words& more) {
    const CommandResult result = run_here(shard_training(model, file, data.path(), more));
    CAPTURE(more, result.out, result.err);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(refused("resnet", "model.pt2", {"--microbatch-size", "2"}),
             ContainsSubstring("--microbatch-size expects 4, as '") &&
                 ContainsSubstring("states it, found 2"));
  CHECK_THAT(refused("resnet", "model.pt", {"--microbatch-size", "41"}),
             ContainsSubstring("found 80 samples; use fewer or smaller microbatches"));
  CHECK_THAT(refused("resnet", "model.pt2", {"--held-out", "1"}),
             ContainsSubstring("--held-out") && ContainsSubstring("less than 1"));
  CHECK_THAT(refused("resnet", "model.pt2", {"--warmup", "11"}),
             ContainsSubstring("--warmup expects at most 10, as many steps as"));
  CHECK_THAT(refused("gpt2", "model.pt2", {}),
             ContainsSubstring("expected 1 argument, as ") && ContainsSubstring("found 2"));
  CHECK_THAT(refused("unet", "model.pt2", {}), ContainsSubstring(data.path()));
  const CommandResult smaller = run_here(
      shard_training("resnet", "model.pt", data.path(), {"--microbatch-size", "2", "--verify"}));
  CAPTURE(smaller.out, smaller.err);
  CHECK(smaller.exit_code == 0);
}

}  // namespace stagecraft::tests

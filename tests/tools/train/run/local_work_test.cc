/// Tests `train --read-on-workers`: ranks read the same values that the driver would have sent.
#include "stagecraft/tools/train/run/local_work.h"

#include <nlohmann/json.hpp>

#include "stagecraft/actors/data/local_source.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

void check_equality(const TrainOutput& output) {
  CAPTURE(output.verify);
  CHECK(output.verify.at("bit_equal") == true);
}

TEST_CASE("worker processes read a text with the bits of one process",
          "[tools][train][local-work][processes]") {
  const Words run{"--ranks", "2", "--accumulate", "2", "--verify"};
  const auto with = [&](const Words& more) {
    Words words = run;
    words.insert(words.end(), more.begin(), more.end());
    return train_json(words);
  };
  const TrainOutput read = with({"--workers", "processes", "--read-on-workers"});
  check_equality(read);
  CHECK(read.sha256() == with({}).sha256());
}

TEST_CASE("so do stages of several sizes, replicas, and a run that continues from a checkpoint",
          "[tools][train][local-work]") {
  check_equality(train_json({"--stages",
                             "2",
                             "--schedule",
                             "dag-kfkb",
                             "--set",
                             "sizes=2,1",
                             "--read-on-workers",
                             "--verify"}));
  CHECK(train_json({"--schedule", "dualpipe", "--ranks", "2", "--read-on-workers"}).sha256() ==
        train_json({"--schedule", "dualpipe", "--ranks", "2"}).sha256());
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a.ckpt";
  (void)train_json({"--steps", "2", "--read-on-workers", "--save", file});
  CHECK(train_json({"--steps", "4", "--read-on-workers", "--load", file}).sha256() ==
        train_json({"--steps", "4"}).sha256());
}

TEST_CASE("worker processes make images, and read the microbatches of a folder",
          "[tools][train][local-work][processes]") {
  const Words reads{"--workers", "processes", "--read-on-workers", "--verify"};
  Words images{STAGECRAFT_COMMAND, "train", "--model", "vit", "--steps",  "2", "--dim",   "16",
               "--heads",          "2",     "--ffn",   "24",  "--layers", "2", "--image", "8",
               "--patch",          "4",     "--ranks", "2"};
  images.insert(images.end(), reads.begin(), reads.end());
  check_equality(train_output(images));
  const std::string folder = STAGECRAFT_SOURCE_DIR "/tests/data/models/gpt2";
  Words file{STAGECRAFT_COMMAND,
             "train",
             "--model-file",
             folder + "/model.pt",
             "--data",
             testing::unpacked_inputs(folder),
             "--stages",
             "2"};
  file.insert(file.end(), reads.begin(), reads.end());
  check_equality(train_output(file));
}

TEST_CASE("a host with another text says so before it trains", "[tools][train][local-work]") {
  tools::register_local_work();
  const TemporaryFolder folder;
  const auto argument = [](const std::string& text) {
    return nlohmann::json{{"model", "llama"},
                          {"sizes", {{"seq", 4}}},
                          {"text", text},
                          {"seed", 0},
                          {"microbatches", 2},
                          {"microbatch_size", 4},
                          {"first batch", "that of another text"}}
        .dump();
  };
  const std::string text = folder.write("text", "a text that is not the driver's");
  CHECK_THAT(
      refusal([&] { (void)make_source("stagecraft train", argument(text)); }, Errc::UsageFile),
      ContainsSubstring("the data on this host differ"));
  CHECK_THAT(refusal([&] { (void)make_source("stagecraft train", argument(text + "x")); },
                     Errc::UsageFile),
             ContainsSubstring("found no file at '" + text + "x'"));
}

TEST_CASE("a text that comes through a pipe cannot be read by workers",
          "[tools][train][local-work]") {
  const CommandResult result =
      run_command({"/bin/sh",
                   "-c",
                   "cat /usr/share/common-licenses/GPL-3 | " STAGECRAFT_COMMAND
                   " train --text /dev/stdin --read-on-workers --steps 1"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, ContainsSubstring("--read-on-workers expects a text that every worker"));
}

}  // namespace
}  // namespace stagecraft::tests

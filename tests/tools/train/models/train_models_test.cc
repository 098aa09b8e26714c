/// Tests `train --model`: each model gives the same in a pipeline as in one process, on drawn data
/// and on folders of images; tests refusals.

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/images/made_images.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

/// Returns the words of a run of a model so small that a step takes no time.
Words tiny(const std::string& model, const Words& more) {
  Words words{STAGECRAFT_COMMAND,
              "train",
              "--model",
              model,
              "--steps",
              "2",
              "--microbatch-size",
              "2",
              "--microbatches",
              "3"};
  const auto add = [&](const Words& sizes) {
    words.insert(words.end(), sizes.begin(), sizes.end());
  };
  if (model == "unet") {
    add({"--image", "8", "--width", "8", "--levels", "2", "--heads", "2"});
  } else {
    add({"--dim", "16", "--heads", "2", "--ffn", "24", "--layers", "3"});
  }
  if (model == "vit" || model == "clip") {
    add({"--image", "8", "--patch", "4"});
  }
  if (model != "vit" && model != "unet") {
    add({"--seq", "12"});
  }
  add(more);
  return words;
}

void check_verified(const TrainOutput& output) {
  CAPTURE(output.verify);
  CHECK(output.verify.at("bit_equal") == true);
  CHECK(output.steps.size() == 2);
}

void check_refused(const Words& words, const Words& parts) {
  const CommandResult result = run_here(words);
  CAPTURE(words, result.out, result.err);
  CHECK(result.exit_code == 2);
  for (const std::string& part : parts) {
    CHECK_THAT(result.err, ContainsSubstring(part));
  }
}

/// Writes two classes of four images, with captions for all.
void write_images(const std::string& folder) {
  std::string captions;
  for (int i = 0; i < 8; ++i) {
    const bool red = i % 2 == 0;
    const Rgba color{static_cast<std::uint8_t>(red ? 250 - i : i),
                     static_cast<std::uint8_t>(10 * i),
                     static_cast<std::uint8_t>(red ? i : 250 - i),
                     255};
    const std::string path =
        std::string(red ? "red/" : "blue/") + std::to_string(i) + (i < 4 ? ".png" : ".jpg");
    write_below(folder, path, i < 4 ? made_png(12, 10, color) : made_jpeg(16, 9, color));
    captions += path + "\ta " + (red ? "red" : "blue") + " one\n";
  }
  write_below(folder, "captions.txt", captions);
}

}  // namespace

TEST_CASE("every model trains by pipeline with the bits of one process", "[tools][train][models]") {
  const std::string model = GENERATE("llama", "moe", "vit", "unet", "clip");
  CAPTURE(model);
  const TrainOutput two = train_output(tiny(model, {"--stages", "2", "--verify"}));
  check_verified(two);
  const TrainOutput three =
      train_output(tiny(model, {"--stages", "3", "--schedule", "gpipe", "--verify"}));
  check_verified(three);
  // Blocks of one stage add up their gradients of the embedded time before stages do, so the sums
  // differ.
  if (model != "unet") {
    CHECK(three.sha256() == two.sha256());
  }
  CHECK(train_output(tiny(model, {"--stages", "2", "--seed", "1"})).sha256() != two.sha256());
}

TEST_CASE("models whose stages branch train by the schedules of their stage graph",
          "[tools][train][models]") {
  const std::string plain = train_output(tiny("clip", {"--stages", "3"})).sha256();
  const TrainOutput clip = train_output(
      tiny("clip", {"--stages", "3", "--schedule", "dag-1f1b", "--graph", "0-2,1-2", "--verify"}));
  check_verified(clip);
  CHECK(clip.sha256() == plain);
  // The towers begin together, which is the purpose of the graph.
  const CommandResult grid =
      run_here(tiny("clip", {"--stages", "3", "--schedule", "dag-1f1b", "--dry-run"}));
  CHECK(grid.exit_code == 0);
  CHECK_THAT(grid.out, ContainsSubstring("1F0 1F1"));
  const TrainOutput unet =
      train_output(tiny("unet", {"--stages", "3", "--schedule", "dag-1f1b", "--verify"}));
  check_verified(unet);
  CHECK(unet.sha256() == train_output(tiny("unet", {"--stages", "3"})).sha256());
  check_verified(train_output(tiny(
      "clip", {"--stages", "3", "--schedule", "dag-gpipe", "--workers", "processes", "--verify"})));
}

TEST_CASE("stages of models take microbatches of different sizes",
          "[tools][train][models][sizes]") {
  const auto check = [](const std::string& model, const std::string& sizes) {
    CAPTURE(model, sizes);
    Words words = tiny(model, {"--stages", "3", "--schedule", "dag-kfkb", "--set", sizes});
    words[9] = "4";  // microbatches
    words.emplace_back("--verify");
    check_verified(train_output(words));
  };
  const std::string model = GENERATE("llama", "vit", "unet", "clip");
  check(model, "sizes=1,2,4");
  check(model, "sizes=2,1,1");
}

TEST_CASE("a model that hands on what has no row per sample takes one size",
          "[tools][train][models][sizes]") {
  const CommandResult result =
      run_here(tiny("moe", {"--stages", "3", "--schedule", "dag-kfkb", "--set", "sizes=1,1,3"}));
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err,
             ContainsSubstring("stage 1 takes 1 microbatch as one and stage 2 takes 3") &&
                 ContainsSubstring("has no dimension"));
}

TEST_CASE("models of images train on folders of them", "[tools][train][models]") {
  const TemporaryFolder folder;
  write_images(folder.path());
  const std::string model = GENERATE("vit", "unet", "clip");
  CAPTURE(model);
  const Words words{"--images", folder.path(), "--stages", "2", "--verify", "--eval-every", "1"};
  const TrainOutput output = train_output(tiny(model, words));
  check_verified(output);
  CHECK(output.sha256() != train_output(tiny(model, {"--stages", "2"})).sha256());
}

TEST_CASE("a run that continues from a checkpoint meets the images it would have met",
          "[tools][train][models]") {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/half.ckpt";
  Words half = tiny("unet", {"--stages", "2", "--save", saved});
  half[5] = "1";
  (void)train_output(half);
  CHECK(train_output(tiny("unet", {"--stages", "2", "--load", saved})).sha256() ==
        train_output(tiny("unet", {"--stages", "2"})).sha256());
}

TEST_CASE("dropout is drawn alike by pipeline and in one process", "[tools][train][models]") {
  const TrainOutput output =
      train_output(tiny("vit", {"--stages", "2", "--dropout", "0.1", "--verify"}));
  check_verified(output);
  CHECK(output.sha256() != train_output(tiny("vit", {"--stages", "2"})).sha256());
}

TEST_CASE("options that make no model are refused by name", "[tools][train][models]") {
  const auto train = [](Words more) {
    more.insert(more.begin(), {STAGECRAFT_COMMAND, "train"});
    return more;
  };
  check_refused(train({"--model", "unet", "--stages", "9"}), {"make 7 residual blocks"});
  check_refused(train({"--model", "clip", "--layers", "1", "--stages", "4"}),
                {"--layers expects at least 2 in each tower for 4 stages"});
  check_refused(train({"--graph", "0-2,1-2"}),
                {"--graph expects a model whose stages are no chain: unet and clip",
                 "found llama, whose stages are 0-1,1-2"});
  check_refused(tiny("clip", {"--graph", "0-1,1-2", "--schedule", "dag-1f1b"}),
                {"--graph expects 0-2,1-2", "found 0-1,1-2"});
  check_refused(tiny("clip", {"--graph", "0-2,1-2", "--ranks", "4"}),
                {"--graph expects edges over 4 stages"});
}

TEST_CASE("folders that a model cannot learn from are refused by name", "[tools][train][models]") {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& model) {
    return tiny(model, {"--images", folder.path(), "--stages", "2"});
  };
  check_refused(with("vit"), {"found none in '" + folder.path()});
  write_below(folder.path(), "red/1.png", made_png(8, 8, {255, 0, 0, 255}));
  check_refused(with("vit"), {"at least two classes", "'red'"});
  check_refused(with("clip"), {"found no readable", "captions.txt"});
  write_below(folder.path(), "captions.txt", "red/2.png\tgone\n");
  check_refused(with("clip"), {"captions.txt:1", "red/2.png"});
  write_below(folder.path(), "blue/1.jpg", made_jpeg(32, 32, {0, 0, 255, 0}).substr(0, 200));
  check_refused(with("unet"), {"a damaged JPEG", "blue/1.jpg"});
  write_below(folder.path(), "blue/1.jpg", "no image at all");
  check_refused(with("vit"), {"a file that is neither", "blue/1.jpg"});
  write_below(folder.path(), "blue/1.jpg", huge_png(60'000, 60'000));
  check_refused(with("vit"), {"60000 x 60000 pixels", "blue/1.jpg"});
  write_below(folder.path(), "blue/1.jpg", made_jpeg(8, 8, {0, 0, 255, 0}));
  Words words = with("vit");
  words.insert(words.end(), {"--eval-every", "1"});
  check_refused(words, {"an evaluation expects a class of at least two images"});
}

}  // namespace stagecraft::tests

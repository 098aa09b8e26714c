#include "stagecraft/tools/train/catalog/model_options.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

/// ModelWords is a command that takes a model and one option more.
struct ModelWords {
  ModelChoice model;
  DataPlaces data;
  std::string help;

  explicit ModelWords(const std::vector<std::string>& words) {
    CLI::App app("", "stagecraft train");
    std::string more;
    app.add_option("--eval-every", more);
    add_model_options(app, model, data);
    help = parse_command_line(app, words).value_or("");
    if (help.empty()) {
      settle_model("stagecraft train", app, model, data, {"--eval-every"});
    }
  }
};

std::string refused_words(const std::vector<std::string>& words) {
  return refusal([&] { const ModelWords settled(words); });
}

TEST_CASE("a model has the sizes that were given, and defaults for the others",
          "[tools][train][options]") {
  const ModelWords vit({"--model", "vit", "--dim", "64", "--dropout", "0.5"});
  CHECK(vit.model.name == "vit");
  CHECK(vit.model.sizes.whole("dim") == 64);
  CHECK(vit.model.sizes.real("dropout") == 0.5);
  CHECK(vit.model.sizes.whole("ffn") == 512);
  CHECK_FALSE(vit.model.sizes.has("layers"));  // as many as the stages need
  CHECK_FALSE(vit.model.sizes.has("seq"));     // no size of this model
  CHECK(ModelWords({}).model.name == "llama");
  CHECK(ModelWords({}).model.sizes.whole("ffn") == 344);
}

TEST_CASE("the help of a size lists each meaning with its models and their defaults",
          "[tools][train][options]") {
  const std::string help = ModelWords({"--help"}).help;
  const auto said_of = [&](const std::string& option) {
    std::string text;
    for (const char c : help.substr(help.find("  " + option + " "), 400)) {
      if (c != '\n' && (c != ' ' || !text.ends_with(' '))) {
        text += c;
      }
    }
    return text;
  };
  CHECK_THAT(said_of("--heads"),
             ContainsSubstring("must divide --dim: llama [4], moe [4], vit [4], clip [4]; "
                               "attention heads at the lowest level: unet [4]"));
  CHECK_THAT(said_of("--dropout"), ContainsSubstring("--dropout X dropout probability: vit [0]"));
}

TEST_CASE("an unknown model is answered with all names and the nearest",
          "[tools][train][options][bad-input]") {
  CHECK(refused_words({"--model", "vti"}) ==
        "--model expects llama, moe, vit, unet or clip, found 'vti'; did you mean vit? a model "
        "of your own is a file for --model-file; see stagecraft train --help");
  // A long word is cut.
  CHECK_THAT(refused_words({"--model", std::string(100, 'x')}),
             ContainsSubstring("found '" + std::string(40, 'x') + "'"));
}

TEST_CASE("sizes and data of other models are refused with the models that have them",
          "[tools][train][options][bad-input]") {
  CHECK_THAT(refused_words({"--model", "vit", "--experts", "4"}),
             ContainsSubstring("--experts is an option of moe, found --model vit; leave one of"));
  CHECK_THAT(refused_words({"--dropout", "0.1"}),
             ContainsSubstring("--dropout is an option of vit, found --model llama"));
  CHECK_THAT(refused_words({"--model", "vit", "--text", "x"}),
             ContainsSubstring("--text is an option of llama and moe, found --model vit"));
  CHECK_THAT(refused_words({"--images", "x"}),
             ContainsSubstring("--images is an option of vit, unet and clip"));
}

TEST_CASE("sizes that make no model are refused", "[tools][train][options][bad-input]") {
  CHECK_THAT(refused_words({"--model", "vit", "--patch", "5"}),
             ContainsSubstring("--patch expects a divisor of --image 32, found 5"));
  CHECK_THAT(refused_words({"--model", "moe", "--experts", "1"}),
             ContainsSubstring("--experts expects at least 2"));
  CHECK_THAT(refused_words({"--model", "unet", "--image", "30"}),
             ContainsSubstring("--image expects a size that 3 levels can halve 2 times without "
                               "remainder"));
  CHECK_THAT(refused_words({"--model", "unet", "--width", "12"}),
             ContainsSubstring("--width expects a multiple of 8"));
  CHECK_THAT(refused_words({"--model", "vit", "--dropout", "1"}),
             ContainsSubstring("--dropout expects a number from 0 to less than 1, found '1'"));
  CHECK_THAT(refused_words({"--model", "moe", "--capacity", "0"}),
             ContainsSubstring("--capacity expects a number greater than 0, found '0'"));
}

TEST_CASE("a model from a file needs its data, and takes no option of named models",
          "[tools][train][options][bad-input]") {
  const std::vector<std::string> file{"--model-file", "m.pt2", "--data", "d"};
  CHECK(ModelWords(file).model.file == "m.pt2");
  CHECK(ModelWords(file).data.folder == "d");
  CHECK_THAT(refused_words({"--model-file", "m.pt2"}),
             ContainsSubstring("--model-file expects --data DIR"));
  CHECK_THAT(refused_words({"--data", "d"}), ContainsSubstring("--data expects --model-file"));
  for (const char* option : {"--model", "--text", "--images", "--layers", "--eval-every"}) {
    std::vector<std::string> words = file;
    words.insert(words.end(), {option, "2"});
    CHECK_THAT(refused_words(words),
               ContainsSubstring(std::string(option) + " is an option of the models that have a "
                                                       "name, found --model-file"));
  }
}

}  // namespace
}  // namespace stagecraft::tools

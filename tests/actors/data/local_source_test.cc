#include "stagecraft/actors/data/local_source.h"

#include <stdexcept>

#include <ATen/ops/full.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

class Numbers final : public StepSource {
 public:
  explicit Numbers(std::string argument) : factor_(std::stod(argument)) {}
  LabeledBatch batch(std::int64_t number) override {
    return {{at::full({1}, factor_ * static_cast<double>(number))}, {}};
  }

 private:
  double factor_;
};

TEST_CASE("a rank makes a source by its name and argument", "[actors][data]") {
  register_source("test numbers",
                  [](const std::string& argument) { return std::make_unique<Numbers>(argument); });
  const std::unique_ptr<StepSource> source = make_source("test numbers", "2.5");
  CHECK(source->batch(4).inputs[0].tensor.item<double>() == 10.0);
  CHECK_FALSE(source->part({.batch = 4}).has_value());
  // Each rank has one of its own.
  CHECK(make_source("test numbers", "1")->batch(4).inputs[0].tensor.item<double>() == 4.0);
}

TEST_CASE("a source needs a name of its own and a maker", "[actors][data]") {
  const auto make = [](const std::string& argument) { return std::make_unique<Numbers>(argument); };
  CHECK_THAT(refusal([&] { register_source("", make); }), ContainsSubstring("found a maker for"));
  CHECK_THAT(refusal([&] { register_source("test empty", nullptr); }),
             ContainsSubstring("found no maker"));
  register_source("test twice", make);
  CHECK_THAT(refusal([&] { register_source("test twice", make); }),
             ContainsSubstring("registered already"));
}

TEST_CASE("a source that cannot be made is refused with what there is", "[actors][data]") {
  register_source("test known",
                  [](const std::string&) -> std::unique_ptr<StepSource> { return nullptr; });
  CHECK_THAT(
      refusal([] { (void)make_source("test unknown", ""); }),
      ContainsSubstring("no source \"test unknown\"") && ContainsSubstring("\"test known\""));
  CHECK_THAT(refusal([] { (void)make_source("test known", ""); }),
             ContainsSubstring("returned no source"));
  register_source("test throws", [](const std::string& argument) -> std::unique_ptr<StepSource> {
    throw std::runtime_error("no folder " + argument);
  });
  CHECK_THROWS_WITH(make_source("test throws", "/data"), "no folder /data");
}

}  // namespace
}  // namespace stagecraft

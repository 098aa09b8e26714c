#include "stagecraft/actors/executor/optimizer/parameter_groups.h"

#include <cmath>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a pattern stands for a whole name", "[executor][groups]") {
  CHECK(matches("*", ""));
  CHECK(matches("*.bias", "layers.0.bias"));
  CHECK(matches("encoder.*", "encoder.0.weight"));
  CHECK(matches("a*b*c", "aXbXbc"));
  CHECK(matches("layer?.weight", "layer1.weight"));
  CHECK(matches("**x**", "x"));
  CHECK_FALSE(matches("encoder", "encoder.weight"));
  CHECK_FALSE(matches("*.bias", "layers.0.bias2"));
  CHECK_FALSE(matches("layer?.weight", "layer.weight"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("a", ""));
  const std::string many(1000, 'a');
  std::string stars;  // the work is at most the product of the lengths
  for (int i = 0; i < 300; ++i) {
    stars += "*a";
  }
  CHECK_FALSE(matches(stars + "b", many));
  CHECK(matches(stars + "*", many));
}

TEST_CASE("the first group that matches has a parameter, and decay is for whom it is asked",
          "[executor][groups]") {
  const Optimizer adamw = AdamW{.lr = 0.5, .weight_decay = 0.1};
  const std::vector<ParameterGroup> groups{{.match = "head.bias", .lr = 0.25},
                                           {.match = "*.bias", .weight_decay = 0.0},
                                           {.match = "head.*", .lr_scale = 10.0},
                                           {.match = "embed.*", .frozen = true}};
  const auto rule = [&](const char* name, std::int64_t dimensions, DecayOn on = DecayOn::All) {
    return rule_of(groups, on, adamw, name, dimensions);
  };
  CHECK(rule("head.bias", 1).weight_decay == 0.1);
  CHECK(rule("head.bias", 1, DecayOn::Matrices).weight_decay == 0.0);
  CHECK(rule("layer.bias", 1).weight_decay == 0.0);
  CHECK(rule("layer.weight", 2, DecayOn::Matrices).weight_decay == 0.1);
  CHECK(rule("embed.weight", 2).frozen);
  CHECK_FALSE(rule("head.weight", 2).frozen);
  // Rates follow the step's rate; the optimizer's own rate is reached to the bit.
  CHECK(rate_of(rule("head.bias", 1), 0.5, 0.5) == 0.25);
  CHECK(rate_of(rule("head.bias", 1), 0.125, 0.5) == 0.0625);
  CHECK(rate_of(rule("head.weight", 2), 0.125, 0.5) == 1.25);
  CHECK(rate_of(rule("layer.weight", 2), 0.125, 0.5) == 0.125);
}

TEST_CASE("groups that cannot be had are refused, naming the group", "[executor][groups]") {
  const auto refused = [](const ParameterGroup& group, const Optimizer& optimizer = Sgd{}) {
    return refusal([&] { check_groups({group}, optimizer); });
  };
  const double nan = std::nan("");
  CHECK_THAT(refused({.match = ""}), ContainsSubstring("1 to 1000 characters"));
  CHECK_THAT(refused({.match = std::string(1001, '*')}), ContainsSubstring("not of 1001"));
  CHECK_THAT(refused({.match = "a", .lr = -1.0}),
             ContainsSubstring("lr of the parameter group \"a\""));
  CHECK_THAT(refused({.match = "a", .lr_scale = nan}), ContainsSubstring("lr_scale of"));
  CHECK_THAT(refused({.match = "a", .weight_decay = nan}), ContainsSubstring("weight_decay of"));
  CHECK_THAT(refused({.match = "a", .lr = 1.0, .lr_scale = 1.0}),
             ContainsSubstring("lr and lr_scale"));
  CHECK_THAT(refused({.match = "a", .lr = 1.0}, Sgd{.lr = 0.0}),
             ContainsSubstring("give the optimizer one above 0"));
  CHECK_THAT(refused({.match = "a", .weight_decay = 0.0, .frozen = true}),
             ContainsSubstring("frozen and has a rate or a decay"));
  CHECK_THAT(refused({.match = "a", .frozen_for = -1}), ContainsSubstring("from 0 on, not -1"));
  CHECK_THAT(refused({.match = "a", .frozen = true, .frozen_for = 1}),
             ContainsSubstring("frozen and frozen_for"));
  CHECK_THAT(
      refusal([] { check_groups(std::vector<ParameterGroup>(1001, {.match = "*"}), Sgd{}); }),
      ContainsSubstring("at most 1000"));
  CHECK_NOTHROW(check_groups({{.match = "a", .lr = 0.0, .weight_decay = 0.0}}, Sgd{}));

  const std::vector<std::string> names{"encoder.weight", "encoder.bias", "head.weight"};
  const auto unmatched = [&](std::vector<ParameterGroup> groups) {
    return refusal([&] { check_groups_match(groups, names); });
  };
  CHECK_THAT(unmatched({{.match = "encodr.weight"}}),
             ContainsSubstring("no parameter matches \"encodr.weight\"") &&
                 ContainsSubstring("did you mean encoder.weight?"));
  CHECK_THAT(unmatched({{.match = "haed.*"}}),
             ContainsSubstring("the 3 parameters are encoder.weight, "));
  CHECK_THAT(unmatched({{.match = "*"}, {.match = "head.*"}}),
             ContainsSubstring("every parameter that \"head.*\" matches belongs to an earlier"));
  CHECK_NOTHROW(check_groups_match({{.match = "head.*"}, {.match = "*"}}, names));
  CHECK_THAT(unmatched({{.match = "head.*", .frozen = true}, {.match = "*", .frozen = true}}),
             ContainsSubstring("the groups freeze every parameter"));
  CHECK_THAT(unmatched({{.match = "head.*", .frozen = true}, {.match = "*", .frozen_for = 1}}),
             ContainsSubstring("let one train from the beginning"));
  CHECK_NOTHROW(check_groups_match({{.match = "encoder.*", .frozen = true}}, names));
}

}  // namespace
}  // namespace stagecraft

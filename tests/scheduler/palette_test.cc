#include "stagecraft/scheduler/render/palette.h"

#include <array>
#include <set>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr std::array kKinds{
    CellKind::Forward, CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight};

std::string colour(CellKind kind, int stage, ColourScheme scheme = ColourScheme::Light) {
  return task_colour({.kind = kind, .stage = StageId(stage)}, scheme);
}

double brightness(const std::string& hex) {
  const auto part = [&](std::size_t at) { return std::stoi(hex.substr(at, 2), nullptr, 16); };
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5);
}

TEST_CASE("every stage and kind has a colour of its own", "[scheduler][render]") {
  for (const ColourScheme scheme : {ColourScheme::Light, ColourScheme::Dark}) {
    std::set<std::string> seen;
    for (int stage = 0; stage < kStageColours; ++stage) {
      for (const CellKind kind : kKinds) {
        const std::string hex = colour(kind, stage, scheme);
        CHECK(hex.size() == 7);
        CHECK(seen.insert(hex).second);
      }
    }
  }
}

TEST_CASE("backwards are darker than forwards, weight halves paler", "[scheduler][render]") {
  for (int stage = 0; stage < kStageColours; ++stage) {
    CAPTURE(stage);
    const double forward = brightness(colour(CellKind::Forward, stage));
    const double input = brightness(colour(CellKind::BackwardInput, stage));
    CHECK(brightness(colour(CellKind::Backward, stage)) < input);
    CHECK(input < forward);
    CHECK(forward < brightness(colour(CellKind::BackwardWeight, stage)));
  }
}

TEST_CASE("no stage looks lighter than another", "[scheduler][render]") {
  for (const CellKind kind : kKinds) {
    for (int stage = 1; stage < kStageColours; ++stage) {
      CAPTURE(stage);
      CHECK(brightness(colour(kind, stage)) ==
            Catch::Approx(brightness(colour(kind, 0))).margin(25));
    }
  }
}

TEST_CASE("more stages than colours begin again", "[scheduler][render]") {
  CHECK(colour(CellKind::Forward, kStageColours + 3) == colour(CellKind::Forward, 3));
  CHECK(colour(CellKind::Forward, -1) == colour(CellKind::Forward, 0));
}

}  // namespace
}  // namespace stagecraft

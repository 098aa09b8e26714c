#include <array>
#include <cmath>
#include <random>
#include <string_view>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/tools/images/image_set.h"

namespace stagecraft::tools {
namespace {

struct Color {
  std::string_view name;
  std::array<std::uint8_t, 3> rgb;
};

constexpr std::array<Color, 8> kColors{{{"red", {220, 40, 40}},
                                        {"green", {40, 180, 60}},
                                        {"blue", {50, 80, 220}},
                                        {"yellow", {235, 215, 50}},
                                        {"purple", {150, 60, 190}},
                                        {"orange", {240, 140, 30}},
                                        {"white", {250, 250, 250}},
                                        {"black", {10, 10, 10}}}};

/// A shape; `covers` returns whether a point belongs to it. Its center is 0 and its reach 1.
struct Shape {
  std::string_view name;
  bool (*covers)(double x, double y);
};

constexpr std::array<Shape, 4> kShapes{
    // sorted by name, as classes are
    {{"circle", [](double x, double y) { return x * x + y * y <= 1.0; }},
     {"cross",
      [](double x, double y) {
        return std::max(std::abs(x), std::abs(y)) <= 1.0 &&
               std::min(std::abs(x), std::abs(y)) <= 0.35;
      }},
     {"square", [](double x, double y) { return std::max(std::abs(x), std::abs(y)) <= 0.85; }},
     {"triangle",
      [](double x, double y) { return std::abs(y) <= 0.9 && std::abs(x) <= (y + 0.9) / 1.8; }}}};

struct Size {
  std::string_view name;
  double reach;  ///< share of the image's side
};

constexpr std::array<Size, 2> kSizes{{{"small", 0.15}, {"large", 0.35}}};

constexpr std::size_t kTimes = 4;  // repeats of each combination
constexpr std::size_t kImages = kShapes.size() * kColors.size() * kSizes.size() * kTimes;

/// Gives the same numbers with every standard library, which its distributions do not promise.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : engine_(seed) {}

  double between(double low, double high) {
    constexpr double kSteps = 4096.0;
    return low + (high - low) * static_cast<double>(engine_() % 4096) / kSteps;
  }

 private:
  std::mt19937_64 engine_;
};

struct Drawing {
  const Shape& shape;
  const Color& color;
  double reach, x, y;
  std::uint8_t ground;
};

void draw(const Drawing& d, std::int64_t side, std::uint8_t* image) {
  const std::int64_t plane = side * side;
  for (std::int64_t i = 0; i < plane; ++i) {
    const double x = (static_cast<double>(i % side) + 0.5) / static_cast<double>(side);
    const double y = (static_cast<double>(i / side) + 0.5) / static_cast<double>(side);
    const bool covered = d.shape.covers((x - d.x) / d.reach, (y - d.y) / d.reach);
    for (std::int64_t c = 0; c < 3; ++c) {
      image[c * plane + i] = covered ? d.color.rgb[static_cast<std::size_t>(c)] : d.ground;
    }
  }
}

}  // namespace

ImageSet drawn_images(std::uint64_t seed, std::int64_t side) {
  ImageSet set;
  for (const Shape& shape : kShapes) {
    set.classes.emplace_back(shape.name);
  }
  set.pixels = at::empty({static_cast<std::int64_t>(kImages), 3, side, side}, at::kByte);
  auto* image = set.pixels.mutable_data_ptr<std::uint8_t>();
  Numbers numbers(seed);
  for (std::size_t i = 0; i < kImages; ++i, image += 3 * side * side) {
    const std::size_t shape = i % kShapes.size();
    const Color& color = kColors[i / kShapes.size() % kColors.size()];
    const Size& size = kSizes[i / (kShapes.size() * kColors.size()) % kSizes.size()];
    const double reach = size.reach * numbers.between(0.85, 1.0);
    const double x = numbers.between(reach, 1.0 - reach);
    const double y = numbers.between(reach, 1.0 - reach);
    const auto ground = static_cast<std::uint8_t>(numbers.between(90.0, 165.0));
    draw({kShapes[shape], color, reach, x, y, ground}, side, image);
    set.labels.push_back(static_cast<std::int64_t>(shape));
    set.captions.push_back({fmt::format("a {} {} {}", size.name, color.name, kShapes[shape].name)});
  }
  return set;
}

}  // namespace stagecraft::tools

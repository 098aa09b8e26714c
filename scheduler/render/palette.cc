#include "stagecraft/scheduler/render/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// In degrees.
constexpr std::array<double, kStageColors> kHues{
    250, 62, 150, 312, 98, 205, 350, 125, 282, 45, 175, 228};

/// The ramp, from orange over green and blue to pink; in degrees.
constexpr double kFirstHue = 45;
constexpr double kLastHue = 352;
/// Used in turn along the ramp; kinds differ by at least 0.06.
constexpr std::array<double, 3> kLightnessSteps{0, 0.025, -0.025};

struct Shade {
  double lightness = 0;
  double chroma = 0;
};

Shade shade(CellKind kind, ColorScheme scheme) {
  const bool light = scheme == ColorScheme::Light;
  switch (kind) {
    case CellKind::Forward:
      return light ? Shade{0.84, 0.09} : Shade{0.62, 0.10};
    case CellKind::Backward:
      return light ? Shade{0.69, 0.13} : Shade{0.47, 0.11};
    case CellKind::BackwardInput:
      return light ? Shade{0.76, 0.12} : Shade{0.54, 0.11};
    case CellKind::BackwardWeight:
      return light ? Shade{0.91, 0.05} : Shade{0.71, 0.06};
    default:
      return light ? Shade{0.80, 0} : Shade{0.55, 0};
  }
}

using Rgb = std::array<double, 3>;

Rgb linear_rgb(const Shade& shade, double hue) {
  const double a = shade.chroma * std::cos(hue * std::numbers::pi / 180);
  const double b = shade.chroma * std::sin(hue * std::numbers::pi / 180);
  const double l = std::pow(shade.lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(shade.lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(shade.lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool displayable(const Rgb& rgb) {
  return std::ranges::all_of(rgb, [](double part) { return part >= 0 && part <= 1; });
}

int to_byte(double linear) {
  const double encoded =
      linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
  return static_cast<int>(std::lround(255 * std::clamp(encoded, 0.0, 1.0)));
}

/// Returns the color as text; makes it paler, with the same hue and lightness, until screens can
/// show it.
std::string text_of(Shade wanted, double hue) {
  Rgb rgb = linear_rgb(wanted, hue);
  while (!displayable(rgb) && wanted.chroma > 0) {
    wanted.chroma = std::max(0.0, wanted.chroma - 0.005);
    rgb = linear_rgb(wanted, hue);
  }
  return fmt::format("#{:02x}{:02x}{:02x}", to_byte(rgb[0]), to_byte(rgb[1]), to_byte(rgb[2]));
}

/// Returns blue for F, orange for B, green for I and violet for W.
double hue_of(CellKind kind) {
  switch (kind) {
    case CellKind::Backward:
      return kHues[1];
    case CellKind::BackwardInput:
      return kHues[2];
    case CellKind::BackwardWeight:
      return kHues[3];
    default:
      return kHues[0];
  }
}

}  // namespace

std::string task_color(const Task& task, ColorScheme scheme, int stages) {
  Shade wanted = shade(task.kind, scheme);
  const int stage = std::max(task.stage.value, 0);
  if (stages <= kStageColors) {
    return text_of(wanted, kHues[static_cast<std::size_t>(stage % kStageColors)]);
  }
  const int colors = std::min(stages, kRampColors);
  const auto place = static_cast<int>(static_cast<std::int64_t>(stage % stages) * colors / stages);
  wanted.lightness += kLightnessSteps[static_cast<std::size_t>(place) % kLightnessSteps.size()];
  return text_of(wanted, kFirstHue + (kLastHue - kFirstHue) * place / (colors - 1));
}

std::string kind_color(CellKind kind, ColorScheme scheme, int chunk, int chunks) {
  if (kind == CellKind::Update || chunks <= 1) {
    return text_of(shade(kind == CellKind::Update ? kind : CellKind::BackwardInput, scheme),
                   hue_of(kind));
  }
  const auto [strong, pale] = scheme == ColorScheme::Light
                                  ? std::pair{Shade{0.70, 0.13}, Shade{0.91, 0.06}}
                                  : std::pair{Shade{0.46, 0.11}, Shade{0.71, 0.07}};
  const double part = static_cast<double>(std::clamp(chunk, 0, chunks - 1)) / (chunks - 1);
  return text_of({strong.lightness + part * (pale.lightness - strong.lightness),
                  strong.chroma + part * (pale.chroma - strong.chroma)},
                 hue_of(kind));
}

}  // namespace stagecraft

// See precice.hpp.
#pragma once

#include <precice/precice.hpp>

"""What VTK's own reader finds in a file of fields, as JSON: run by a Python that has `vtk`."""

import json
import sys


def main(path: str) -> None:
    """Every step of the file, to standard output."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
    from vtkmodules.vtkIOHDF import vtkHDFReader

    reader = vtkHDFReader()
    reader.SetFileName(path)
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    steps = []
    for t in times:
        reader.UpdateTimeStep(t)
        grid = reader.GetOutputDataObject(0)
        found = {
            "points": vtk_to_numpy(grid.GetPoints().GetData()).tolist(),
            "types": [grid.GetCellType(i) for i in range(grid.GetNumberOfCells())],
            "corners": vtk_to_numpy(grid.GetCells().GetConnectivityArray()).tolist(),
        }
        for where, data in (("point_data", grid.GetPointData()), ("cell_data", grid.GetCellData())):
            count = data.GetNumberOfArrays()
            found[where] = {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)).tolist() for i in range(count)}
        steps.append(found)
    json.dump({"times": list(times), "steps": steps}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])

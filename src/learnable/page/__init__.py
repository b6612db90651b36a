"""The page: look at a table, compare models, look into the best one, predict and keep it, in a browser on this machine.

It shows what `evaluation` and `report` compute and computes nothing itself. Three processes: the server (`app`), which
answers the browser and touches no data; one worker per run (`worker`), which fits; and one desk (`desk`), which reads
tables and answers questions about finished runs. Everything finished is a file in the session's private folder
(`store`), so that a reload, a second tab or a killed process loses nothing.
"""
